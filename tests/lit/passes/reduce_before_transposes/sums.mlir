// RUN: stablehlo-alpa-opt %s -alpa-reduce-before-transposes -split-input-file | FileCheck %s

// The dimension that is scattered is the one that it was before.

// CHECK-LABEL: @reduce_scatter
// CHECK-SAME: (%[[A:.+]]: tensor<4x6x2xf32>)
// CHECK-NEXT: %[[SUM:.+]] = "stablehlo.reduce_scatter"(%[[A]]) <{{.*}}scatter_dimension = 1 : i64
// CHECK: (tensor<4x6x2xf32>) -> tensor<4x3x2xf32>
// CHECK-NEXT: %[[MOVED:.+]] = stablehlo.transpose %[[SUM]], dims = [1, 2, 0] : (tensor<4x3x2xf32>) -> tensor<3x2x4xf32>
// CHECK-NEXT: return %[[MOVED]]
func.func @reduce_scatter(%a: tensor<4x6x2xf32>) -> tensor<3x2x4xf32> {
  %0 = stablehlo.transpose %a, dims = [1, 2, 0] : (tensor<4x6x2xf32>) -> tensor<6x2x4xf32>
  %1 = "stablehlo.reduce_scatter"(%0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64}> ({
  ^bb0(%b: tensor<f32>, %c: tensor<f32>):
    %s = stablehlo.add %b, %c : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<6x2x4xf32>) -> tensor<3x2x4xf32>
  return %1 : tensor<3x2x4xf32>
}

// -----

// CHECK-LABEL: @all_reduce
// CHECK: "stablehlo.all_reduce"(%arg0)
// CHECK: (tensor<4x6xf32>) -> tensor<4x6xf32>
// CHECK-NEXT: stablehlo.transpose %{{.+}}, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
func.func @all_reduce(%a: tensor<4x6xf32>) -> tensor<6x4xf32> {
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %1 = "stablehlo.all_reduce"(%0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%b: tensor<f32>, %c: tensor<f32>):
    %s = stablehlo.maximum %b, %c : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<6x4xf32>) -> tensor<6x4xf32>
  return %1 : tensor<6x4xf32>
}

// -----

// One after another, over both axes of a mesh.

// CHECK-LABEL: @two_in_a_row
// CHECK: "stablehlo.reduce_scatter"(%arg0) <{{.*}}scatter_dimension = 1 : i64
// CHECK: (tensor<4x6xf32>) -> tensor<4x3xf32>
// CHECK: "stablehlo.reduce_scatter"{{.*}}scatter_dimension = 0 : i64
// CHECK: (tensor<4x3xf32>) -> tensor<2x3xf32>
// CHECK: stablehlo.transpose %{{.+}}, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
func.func @two_in_a_row(%a: tensor<4x6xf32>) -> tensor<3x2xf32> {
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %1 = "stablehlo.reduce_scatter"(%0) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>, scatter_dimension = 0 : i64}> ({
  ^bb0(%b: tensor<f32>, %c: tensor<f32>):
    %s = stablehlo.add %b, %c : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<6x4xf32>) -> tensor<3x4xf32>
  %2 = "stablehlo.reduce_scatter"(%1) <{replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, scatter_dimension = 1 : i64}> ({
  ^bb0(%b: tensor<f32>, %c: tensor<f32>):
    %s = stablehlo.add %b, %c : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<3x4xf32>) -> tensor<3x2xf32>
  return %2 : tensor<3x2xf32>
}

// -----

// Something else reads what is transposed as well: it would be transposed twice.

// CHECK-LABEL: @read_twice
// CHECK: %[[T:.+]] = stablehlo.transpose
// CHECK-NEXT: "stablehlo.all_reduce"(%[[T]])
func.func @read_twice(%a: tensor<4x6xf32>) -> (tensor<6x4xf32>, tensor<6x4xf32>) {
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %1 = "stablehlo.all_reduce"(%0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%b: tensor<f32>, %c: tensor<f32>):
    %s = stablehlo.add %b, %c : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<6x4xf32>) -> tensor<6x4xf32>
  return %0, %1 : tensor<6x4xf32>, tensor<6x4xf32>
}

// -----

// What is gathered is larger behind the collective than in front of it.

// CHECK-LABEL: @gather
// CHECK: stablehlo.transpose
// CHECK-NEXT: "stablehlo.all_gather"
func.func @gather(%a: tensor<4x6xf32>) -> tensor<12x4xf32> {
  %0 = stablehlo.transpose %a, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<6x4xf32>) -> tensor<12x4xf32>
  return %1 : tensor<12x4xf32>
}
