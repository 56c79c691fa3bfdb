// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd | FileCheck %s

// Blocks for the other devices lie along a dimension of their own, first of all, and no device copies a value around the
// collective more often than the two shardings ask for.

// CHECK: %[[BLOCKS:.+]] = stablehlo.reshape %{{.+}} : (tensor<8x4xf32>) -> tensor<4x2x4xf32>
// CHECK-NEXT: %[[MOVED:.+]] = "stablehlo.all_to_all"(%[[BLOCKS]]) <{{.*}}concat_dimension = 0 : i64, replica_groups = dense<{{\[\[}}0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>, split_count = 4 : i64, split_dimension = 0 : i64{{.*}}(tensor<4x2x4xf32>) -> tensor<4x2x4xf32>
// CHECK-NEXT: %[[ROWS:.+]] = stablehlo.transpose %[[MOVED]], dims = [1, 0, 2] : (tensor<4x2x4xf32>) -> tensor<2x4x4xf32>
// CHECK-NEXT: stablehlo.reshape %[[ROWS]] : (tensor<2x4x4xf32>) -> tensor<2x16xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=4]>} {
  func.func @main(%a: tensor<8x16xf32> {alpa.sharding = #alpa.sharding<RS1>}) -> (tensor<8x16xf32> {alpa.sharding = #alpa.sharding<S1R>}) {
    %0 = alpa.reshard %a from <RS1> to <S1R> : tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
