// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// Groups of three, of neighbours; what is gathered makes rows of one product and batches of another, and is needed whole
// behind them. At step t a device has the block of the one t in front of it.

// CHECK-NOT: all_gather
// CHECK: %[[FIRST:.+]] = "stablehlo.collective_permute"(%arg0){{.*}}dense<{{\[\[}}0, 1], [1, 2], [2, 0], [3, 4], [4, 5], [5, 3]]>
// CHECK-NEXT: stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x8xf32>) -> tensor<2x8xf32>
// CHECK: stablehlo.dynamic_update_slice %{{.+}} : (tensor<6x8xf32>, tensor<2x8xf32>, tensor<i32>, tensor<i32>)
// CHECK: %[[ROWS:.+]] = stablehlo.dynamic_slice %arg2, %{{.+}} sizes = [2, 3]
// CHECK: stablehlo.dot_general %arg0, %[[ROWS]], batching_dims = [0] x [0], contracting_dims = [] x [] : (tensor<2x4xf32>, tensor<2x3xf32>) -> tensor<2x4x3xf32>
// CHECK: stablehlo.dynamic_update_slice %{{.+}} : (tensor<6x4x3xf32>, tensor<2x4x3xf32>
// CHECK: stablehlo.dynamic_update_slice %{{.+}}, %arg0{{.*}} : (tensor<6x4xf32>, tensor<2x4xf32>
// CHECK: %[[SECOND:.+]] = "stablehlo.collective_permute"(%[[FIRST]])
// CHECK-NEXT: stablehlo.dot_general %[[FIRST]], %arg1
// CHECK-NOT: collective_permute
// CHECK: stablehlo.dot_general %[[SECOND]], %arg1
// CHECK-NOT: collective_permute
// CHECK: %[[WHOLE:.+]] = stablehlo.dynamic_update_slice %{{.+}}, %[[SECOND]]{{.*}} : (tensor<6x4xf32>, tensor<2x4xf32>
// CHECK: stablehlo.tanh %[[WHOLE]] : tensor<6x4xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=3]>} {
  func.func @main(%x: tensor<6x4xf32> {alpa.sharding = #alpa.sharding<S1R>}, %w: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RR>}, %y: tensor<6x3xf32> {alpa.sharding = #alpa.sharding<RR>}) -> (tensor<6x8xf32> {alpa.sharding = #alpa.sharding<RR>}, tensor<6x4x3xf32> {alpa.sharding = #alpa.sharding<RRR>}, tensor<6x4xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %0 = alpa.reshard %x from <S1R> to <RR> : tensor<6x4xf32>
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.product_ring = "lhs", alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : (tensor<6x4xf32>, tensor<4x8xf32>) -> tensor<6x8xf32>
    %2 = stablehlo.dot_general %0, %y, batching_dims = [0] x [0], contracting_dims = [] x [] {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.product_ring = "lhs", alpa.results = [#alpa.sharding<RRR>], alpa.strategy = #alpa.strategy<>} : (tensor<6x4xf32>, tensor<6x3xf32>) -> tensor<6x4x3xf32>
    %3 = stablehlo.tanh %0 {alpa.operands = [#alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : tensor<6x4xf32>
    return %1, %2, %3 : tensor<6x8xf32>, tensor<6x4x3xf32>, tensor<6x4xf32>
  }
}
