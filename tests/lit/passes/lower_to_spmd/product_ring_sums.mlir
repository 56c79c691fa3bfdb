// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// Strided groups of two; the product sums over what is gathered: the blocks' products are added up, in 32 bits.

// CHECK-NOT: all_gather
// CHECK: %[[OTHER:.+]] = "stablehlo.collective_permute"(%arg1){{.*}}dense<{{\[\[}}0, 2], [1, 3], [2, 0], [3, 1]]>
// CHECK: %[[OWN:.+]] = stablehlo.dynamic_slice %arg0, %{{.+}} sizes = [4, 3]
// CHECK: %[[A:.+]] = stablehlo.dot_general %[[OWN]], %arg1, contracting_dims = [1] x [0] : (tensor<4x3xbf16>, tensor<3x8xbf16>) -> tensor<4x8xf32>
// CHECK: %[[B:.+]] = stablehlo.dot_general %{{.+}}, %[[OTHER]], contracting_dims = [1] x [0] : (tensor<4x3xbf16>, tensor<3x8xbf16>) -> tensor<4x8xf32>
// CHECK: %[[SUM:.+]] = stablehlo.add %[[A]], %[[B]] : tensor<4x8xf32>
// CHECK: stablehlo.convert %[[SUM]] : (tensor<4x8xf32>) -> tensor<4x8xbf16>
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=2]>} {
  func.func @main(%x: tensor<4x6xbf16> {alpa.sharding = #alpa.sharding<RR>}, %w: tensor<6x8xbf16> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<4x8xbf16> {alpa.sharding = #alpa.sharding<RR>}) {
    %0 = alpa.reshard %w from <S0R> to <RR> : tensor<6x8xbf16>
    %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.product_ring = "rhs", alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : (tensor<4x6xbf16>, tensor<6x8xbf16>) -> tensor<4x8xbf16>
    return %1 : tensor<4x8xbf16>
  }
}
