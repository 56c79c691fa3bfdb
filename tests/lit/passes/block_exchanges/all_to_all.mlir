// RUN: stablehlo-alpa-opt %s -alpa-block-exchanges -split-input-file | FileCheck %s

// Blocks for the other devices lie along a dimension of their own, first of all.

// CHECK-LABEL: @split_first
// CHECK: %[[BLOCKS:.+]] = stablehlo.reshape %{{.+}} : (tensor<8x4xf32>) -> tensor<4x2x4xf32>
// CHECK-NEXT: %[[MOVED:.+]] = "stablehlo.all_to_all"(%[[BLOCKS]]) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, concat_dimension = 0 : i64, replica_groups = dense<{{\[\[}}0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>, split_count = 4 : i64, split_dimension = 0 : i64}> : (tensor<4x2x4xf32>) -> tensor<4x2x4xf32>
// CHECK-NEXT: %[[ROWS:.+]] = stablehlo.transpose %[[MOVED]], dims = [1, 0, 2] : (tensor<4x2x4xf32>) -> tensor<2x4x4xf32>
// CHECK-NEXT: %[[JOINED:.+]] = stablehlo.reshape %[[ROWS]] : (tensor<2x4x4xf32>) -> tensor<2x16xf32>
// CHECK-NEXT: return %[[JOINED]]
func.func @split_first(%a: tensor<8x4xf32>) -> tensor<2x16xf32> {
  %0 = "stablehlo.all_to_all"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, concat_dimension = 1 : i64, replica_groups = dense<[[0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>, split_count = 4 : i64, split_dimension = 0 : i64}> : (tensor<8x4xf32>) -> tensor<2x16xf32>
  return %0 : tensor<2x16xf32>
}

// -----

// What is split lies behind what is joined: the blocks are brought to the front, and come back where they join.

// CHECK-LABEL: @split_last
// CHECK: stablehlo.reshape %{{.+}} : (tensor<4x3x16xf32>) -> tensor<4x3x2x8xf32>
// CHECK-NEXT: stablehlo.transpose %{{.+}}, dims = [2, 0, 1, 3] : (tensor<4x3x2x8xf32>) -> tensor<2x4x3x8xf32>
// CHECK-NEXT: "stablehlo.all_to_all"{{.*}}(tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
// CHECK-NEXT: stablehlo.transpose %{{.+}}, dims = [1, 0, 2, 3] : (tensor<2x4x3x8xf32>) -> tensor<4x2x3x8xf32>
// CHECK-NEXT: stablehlo.reshape %{{.+}} : (tensor<4x2x3x8xf32>) -> tensor<4x6x8xf32>
func.func @split_last(%a: tensor<4x3x16xf32>) -> tensor<4x6x8xf32> {
  %0 = "stablehlo.all_to_all"(%a) <{concat_dimension = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 2 : i64}> : (tensor<4x3x16xf32>) -> tensor<4x6x8xf32>
  return %0 : tensor<4x6x8xf32>
}

// -----

// Joined along the first dimension, they lie there already; split and joined along one dimension, they come back there.

// CHECK-LABEL: @join_first
// CHECK: stablehlo.reshape %{{.+}} : (tensor<2x16xf32>) -> tensor<2x4x4xf32>
// CHECK-NEXT: stablehlo.transpose %{{.+}}, dims = [1, 0, 2] : (tensor<2x4x4xf32>) -> tensor<4x2x4xf32>
// CHECK-NEXT: "stablehlo.all_to_all"
// CHECK-NEXT: stablehlo.reshape %{{.+}} : (tensor<4x2x4xf32>) -> tensor<8x4xf32>
// CHECK: stablehlo.reshape %{{.+}} : (tensor<8x4xf32>) -> tensor<8x4x1xf32>
// CHECK-NEXT: stablehlo.transpose %{{.+}}, dims = [1, 0, 2] : (tensor<8x4x1xf32>) -> tensor<4x8x1xf32>
// CHECK-NEXT: "stablehlo.all_to_all"
// CHECK-NEXT: stablehlo.transpose %{{.+}}, dims = [1, 0, 2] : (tensor<4x8x1xf32>) -> tensor<8x4x1xf32>
// CHECK-NEXT: stablehlo.reshape %{{.+}} : (tensor<8x4x1xf32>) -> tensor<8x4xf32>
func.func @join_first(%a: tensor<2x16xf32>) -> tensor<8x4xf32> {
  %0 = "stablehlo.all_to_all"(%a) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, split_count = 4 : i64, split_dimension = 1 : i64}> : (tensor<2x16xf32>) -> tensor<8x4xf32>
  %1 = "stablehlo.all_to_all"(%0) <{concat_dimension = 1 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, split_count = 4 : i64, split_dimension = 1 : i64}> : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// -----

// As it should be already; of several operands, as manual computations may have it; of sizes that are not known.

// CHECK-LABEL: @kept
// CHECK-NEXT: "stablehlo.all_to_all"(%arg0)
// CHECK-NEXT: "stablehlo.all_to_all"(%arg0, %arg0)
// CHECK-NEXT: "stablehlo.all_to_all"(%arg1)
// CHECK-NEXT: return
func.func @kept(%a: tensor<4x16xf32>, %b: tensor<?x16xf32>) -> (tensor<4x16xf32>, tensor<16x4xf32>, tensor<16x4xf32>, tensor<?x4xf32>) {
  %0 = "stablehlo.all_to_all"(%a) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, split_count = 4 : i64, split_dimension = 0 : i64}> : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %1:2 = "stablehlo.all_to_all"(%a, %a) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, split_count = 4 : i64, split_dimension = 1 : i64}> : (tensor<4x16xf32>, tensor<4x16xf32>) -> (tensor<16x4xf32>, tensor<16x4xf32>)
  %2 = "stablehlo.all_to_all"(%b) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, split_count = 4 : i64, split_dimension = 1 : i64}> : (tensor<?x16xf32>) -> tensor<?x4xf32>
  return %0, %1#0, %1#1, %2 : tensor<4x16xf32>, tensor<16x4xf32>, tensor<16x4xf32>, tensor<?x4xf32>
}

// -----

// Blocks lie one behind another where all in front of what is split has a size of 1: XLA would copy them once more.

// CHECK-LABEL: @behind_ones
// CHECK-NEXT: "stablehlo.all_to_all"(%arg0) {{.*}} : (tensor<1x16x4xf32>) -> tensor<4x4x4xf32>
// CHECK-NEXT: return
func.func @behind_ones(%a: tensor<1x16x4xf32>) -> tensor<4x4x4xf32> {
  %0 = "stablehlo.all_to_all"(%a) <{concat_dimension = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>, split_count = 4 : i64, split_dimension = 1 : i64}> : (tensor<1x16x4xf32>) -> tensor<4x4x4xf32>
  return %0 : tensor<4x4x4xf32>
}
