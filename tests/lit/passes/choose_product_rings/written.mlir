// RUN: stablehlo-alpa-opt %s -split-input-file -pass-pipeline="builtin.module(alpa-choose-product-rings{rings=0},alpa-verify-plan)" | FileCheck %s --check-prefixes=CHECK,FIRST
// RUN: stablehlo-alpa-opt %s -split-input-file -pass-pipeline="builtin.module(alpa-choose-product-rings{rings=1},alpa-verify-plan)" | FileCheck %s --check-prefixes=CHECK,SECOND

// Two products share what is gathered. One makes rows of it, the other sums over them: the first ring has both, the
// second the rows alone.

// CHECK-LABEL: @gathered
// FIRST: stablehlo.dot_general {{.*}}alpa.product_ring = "lhs"
// FIRST: stablehlo.dot_general {{.*}}alpa.product_ring = "rhs"
// SECOND: stablehlo.dot_general {{.*}}alpa.product_ring = "lhs"
// SECOND-NOT: alpa.product_ring
// SECOND: return
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @gathered(%x: tensor<6x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %w: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RR>}, %y: tensor<6x2xf32> {alpa.sharding = #alpa.sharding<RR>}) -> (tensor<6x8xf32> {alpa.sharding = #alpa.sharding<RR>}, tensor<2x4xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %0 = alpa.reshard %x from <S0R> to <RR> : tensor<6x4xf32>
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
    %2 = stablehlo.dot_general %y, %0, contracting_dims = [0] x [0] {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : (tensor<6x2xf32>, tensor<6x4xf32>) -> tensor<2x4xf32>
    return %1, %2 : tensor<6x8xf32>, tensor<2x4xf32>
  }
}

// -----

// An all-gather before a product, and a reduce-scatter behind it.

// CHECK-LABEL: @scattered
// FIRST: stablehlo.dot_general {{.*}}alpa.product_ring = "lhs"
// SECOND: stablehlo.dot_general {{.*}}alpa.product_ring = "result"
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=2]>} {
  func.func @scattered(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<S1S0>}, %w: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<4x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = alpa.reshard %x from <S1S0> to <RS0> : tensor<4x8xf32>
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<c=[0]>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    %2 = alpa.reshard %1 from <RRP0> to <S0R> : tensor<4x4xf32>
    return %2 : tensor<4x4xf32>
  }
}
