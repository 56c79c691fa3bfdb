// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics -pass-pipeline="builtin.module(alpa-choose-product-rings{rings=0,1})"

// A product is done beside one collective.
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=2]>} {
  func.func @both(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<S1S0>}, %w: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<4x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = alpa.reshard %x from <S1S0> to <RS0> : tensor<4x8xf32>
    // expected-error @below {{is done beside what becomes of its lhs, not beside what becomes of its result as well}}
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<c=[0]>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    %2 = alpa.reshard %1 from <RRP0> to <S0R> : tensor<4x4xf32>
    return %2 : tensor<4x4xf32>
  }
}

// -----

// Groups of several axes, results that others use, and algorithms are left as they are.
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=2]>} {
  // expected-error @below {{has 0 collectives that products can be done beside, there is no number 0}}
  func.func @none(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<S01R>}, %w: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<RR>}) -> (tensor<4x4xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %0 = alpa.reshard %x from <S01R> to <RR> : tensor<4x8xf32>
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    return %1 : tensor<4x4xf32>
  }
}

// -----

// expected-error @below {{has no 'alpa.mesh'}}
module {
  func.func @unplanned(%x: tensor<4xf32>) -> tensor<4xf32> {
    return %x : tensor<4xf32>
  }
}
