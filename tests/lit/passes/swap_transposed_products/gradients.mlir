// RUN: stablehlo-alpa-opt %s -alpa-swap-transposed-products -split-input-file | FileCheck %s

// The dimension that is scattered is the one that it was, and so is the
// precision of each operand.

// CHECK-LABEL: @reduce_scatter
// CHECK-SAME: (%[[G:.+]]: tensor<8x4xf32>, %[[X:.+]]: tensor<8x6xf32>)
// CHECK-NEXT: %[[DOT:.+]] = stablehlo.dot_general %[[X]], %[[G]], contracting_dims = [0] x [0], precision = [HIGH, DEFAULT] : (tensor<8x6xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
// CHECK-NEXT: %[[SUM:.+]] = "stablehlo.reduce_scatter"(%[[DOT]]) <{{.*}}scatter_dimension = 0 : i64
// CHECK: (tensor<6x4xf32>) -> tensor<3x4xf32>
// CHECK-NEXT: return %[[SUM]]
func.func @reduce_scatter(%g: tensor<8x4xf32>, %x: tensor<8x6xf32>) -> tensor<3x4xf32> {
  %0 = stablehlo.dot_general %g, %x, contracting_dims = [0] x [0], precision = [DEFAULT, HIGH] : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %1 = "stablehlo.reduce_scatter"(%0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 1 : i64}> ({
  ^bb0(%b: tensor<f32>, %c: tensor<f32>):
    %s = stablehlo.add %b, %c : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x6xf32>) -> tensor<4x3xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
  return %2 : tensor<3x4xf32>
}

// -----

// Experts in a batch, tokens in two dimensions, and sums over both axes of a
// mesh, one after another.

// CHECK-LABEL: @experts
// CHECK: stablehlo.dot_general %arg1, %arg0, batching_dims = [0] x [1], contracting_dims = [1, 2] x [0, 2] : (tensor<2x5x7x6xf32>, tensor<5x2x7x4xf32>) -> tensor<2x6x4xf32>
// CHECK: "stablehlo.all_reduce"
// CHECK: (tensor<2x6x4xf32>) -> tensor<2x6x4xf32>
// CHECK: "stablehlo.reduce_scatter"{{.*}}scatter_dimension = 2 : i64
// CHECK: (tensor<2x6x4xf32>) -> tensor<2x6x2xf32>
// CHECK-NEXT: return
func.func @experts(%g: tensor<5x2x7x4xf32>, %x: tensor<2x5x7x6xf32>) -> tensor<2x6x2xf32> {
  %0 = stablehlo.dot_general %g, %x, batching_dims = [1] x [0], contracting_dims = [0, 2] x [1, 2] : (tensor<5x2x7x4xf32>, tensor<2x5x7x6xf32>) -> tensor<2x4x6xf32>
  %1 = "stablehlo.all_reduce"(%0) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> ({
  ^bb0(%b: tensor<f32>, %c: tensor<f32>):
    %s = stablehlo.add %b, %c : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %2 = "stablehlo.reduce_scatter"(%1) <{replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, scatter_dimension = 1 : i64}> ({
  ^bb0(%b: tensor<f32>, %c: tensor<f32>):
    %s = stablehlo.add %b, %c : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<2x4x6xf32>) -> tensor<2x2x6xf32>
  %3 = stablehlo.transpose %2, dims = [0, 2, 1] : (tensor<2x2x6xf32>) -> tensor<2x6x2xf32>
  return %3 : tensor<2x6x2xf32>
}

// -----

// A batch that moves is no order of the swapped product.

// CHECK-LABEL: @moved_batch
// CHECK: stablehlo.dot_general %arg0, %arg1
// CHECK: stablehlo.transpose
func.func @moved_batch(%g: tensor<2x8x4xf32>, %x: tensor<2x8x6xf32>) -> tensor<6x2x4xf32> {
  %0 = stablehlo.dot_general %g, %x, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x8x4xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %1 = "stablehlo.all_reduce"(%0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%b: tensor<f32>, %c: tensor<f32>):
    %s = stablehlo.add %b, %c : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<2x4x6xf32>) -> tensor<2x4x6xf32>
  %2 = stablehlo.transpose %1, dims = [2, 0, 1] : (tensor<2x4x6xf32>) -> tensor<6x2x4xf32>
  return %2 : tensor<6x2x4xf32>
}

// -----

// Something else reads the sum in its own order.

// CHECK-LABEL: @read_twice
// CHECK: stablehlo.dot_general %arg0, %arg1
// CHECK: stablehlo.transpose
func.func @read_twice(%g: tensor<8x4xf32>, %x: tensor<8x6xf32>) -> (tensor<6x4xf32>, tensor<4x6xf32>) {
  %0 = stablehlo.dot_general %g, %x, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %1 = "stablehlo.all_reduce"(%0) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%b: tensor<f32>, %c: tensor<f32>):
    %s = stablehlo.add %b, %c : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  return %2, %1 : tensor<6x4xf32>, tensor<4x6xf32>
}

// -----

// Without a sum the product is written as it is read.

// CHECK-LABEL: @no_sum
// CHECK: stablehlo.dot_general %arg0, %arg1
// CHECK: stablehlo.transpose
func.func @no_sum(%g: tensor<8x4xf32>, %x: tensor<8x6xf32>) -> tensor<6x4xf32> {
  %0 = stablehlo.dot_general %g, %x, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  return %1 : tensor<6x4xf32>
}
