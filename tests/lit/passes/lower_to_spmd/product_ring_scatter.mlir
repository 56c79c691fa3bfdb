// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// The sum of a block goes around in the type of the result; each device adds its share in 32 bits. What the product is
// made of is not gathered first.

// CHECK-NOT: reduce_scatter
// CHECK: %[[ROWS:.+]] = stablehlo.dynamic_slice %arg0, %{{.+}} sizes = [2, 4]
// CHECK: %[[A:.+]] = stablehlo.dot_general %[[ROWS]], %arg1, contracting_dims = [1] x [0] : (tensor<2x4xbf16>, tensor<4x8xbf16>) -> tensor<2x8xf32>
// CHECK: %[[SENT:.+]] = stablehlo.convert %[[A]] : (tensor<2x8xf32>) -> tensor<2x8xbf16>
// CHECK: %[[ARRIVED:.+]] = "stablehlo.collective_permute"(%[[SENT]]){{.*}}dense<{{\[\[}}0, 1], [1, 0]]>
// CHECK: %[[B:.+]] = stablehlo.dot_general %{{.+}}, %arg1{{.*}} -> tensor<2x8xf32>
// CHECK: %[[WIDE:.+]] = stablehlo.convert %[[ARRIVED]]
// CHECK: %[[SUM:.+]] = stablehlo.add %[[WIDE]], %[[B]] : tensor<2x8xf32>
// CHECK: stablehlo.convert %[[SUM]] : (tensor<2x8xf32>) -> tensor<2x8xbf16>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4x8xbf16> {alpa.sharding = #alpa.sharding<RS0>}, %w: tensor<8x8xbf16> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<4x8xbf16> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<S0R>], alpa.product_ring = "result", alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<c=[0]>} : (tensor<4x8xbf16>, tensor<8x8xbf16>) -> tensor<4x8xbf16>
    %1 = alpa.reshard %0 from <RRP0> to <S0R> : tensor<4x8xbf16>
    return %1 : tensor<4x8xbf16>
  }
}
