// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics -alpa-verify-plan
// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics -alpa-lower-to-spmd

// There is no gather to be done beside it.
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @whole(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RR>}, %w: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<RR>}) -> (tensor<4x4xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    // expected-error @below {{cannot be done beside an all-gather: its lhs has to be a reshard that ends with one over one axis}}
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.product_ring = "lhs", alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    return %0 : tensor<4x4xf32>
  }
}

// -----

// Others use what would be scattered.
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @used(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RS0>}, %w: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<4x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, tensor<4x4xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    // expected-error @below {{cannot be done beside a reduce-scatter: its result needs one use}}
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<S0R>], alpa.product_ring = "result", alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<c=[0]>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    %1 = alpa.reshard %0 from <RRP0> to <S0R> : tensor<4x4xf32>
    %2 = alpa.reshard %0 from <RRP0> to <RR> : tensor<4x4xf32>
    return %1, %2 : tensor<4x4xf32>, tensor<4x4xf32>
  }
}

// -----

// The second product waits for the first, by which the blocks would go as well.
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @late(%x: tensor<4x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %w: tensor<4x4xf32> {alpa.sharding = #alpa.sharding<RR>}) -> (tensor<4x4xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %0 = alpa.reshard %x from <S0R> to <RR> : tensor<4x4xf32>
    // expected-error @below {{its other operand there before that is used}}
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.product_ring = "lhs", alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %2 = stablehlo.dot_general %1, %0, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.product_ring = "rhs", alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    return %2 : tensor<4x4xf32>
  }
}
