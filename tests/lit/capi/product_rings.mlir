// RUN: alpa-capi-test describe %s | FileCheck %s

// An all-gather before a product, and a reduce-scatter behind it.
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=2]>} {
  func.func public @main(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<S1S0>}, %w: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<4x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = alpa.reshard %x from <S1S0> to <RS0> : tensor<4x8xf32>
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<c=[0]>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    %2 = alpa.reshard %1 from <RRP0> to <S0R> : tensor<4x4xf32>
    return %2 : tensor<4x4xf32>
  }
}

// One product is in both: on a device its 4 x 4 x 4, in blocks of two rows.
// CHECK-LABEL: rings:
// CHECK-NEXT: kind: 1 2
// CHECK-NEXT: axes: 2 1
// CHECK-NEXT: bytes: 64 64
// CHECK-NEXT: count: 1 1
// CHECK: product: 0 0
// CHECK-NEXT: product_ring: 0 1
// CHECK-NEXT: shape: 1 4 4 4 1 4 4 4
// CHECK-NEXT: block_shape: 1 2 4 4 1 2 4 4
// CHECK-NEXT: product_bytes: 192 192
// CHECK-NEXT: block_bytes: 128 128
// CHECK-NEXT: name: 'stablehlo.dot_general' 'stablehlo.dot_general'
// CHECK-NEXT: dtype: 'f32' 'f32'
