// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -split-input-file -o /dev/null 2>&1 | FileCheck %s

// What is normalised by sums of its last dimension is a kernel, whose result is stored. Of scores that lie in another order
// in memory the product computes it.

// CHECK: remark: result 0 lives
// CHECK-NEXT: %scores = stablehlo.dot_general
// CHECK: remark: result 0 lives
// CHECK-NEXT: %sum = "stablehlo.reduce"
// CHECK: remark: result 0 lives
// CHECK-NEXT: %weights = stablehlo.divide
// CHECK: remark: result 0 lives
// CHECK-NEXT: %out = stablehlo.dot_general

func.func @in_order(%q: tensor<8x4x16xf32>, %k: tensor<8x32x16xf32>) -> tensor<8x4x16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %scores = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<8x4x16xf32>, tensor<8x32x16xf32>) -> tensor<8x4x32xf32>
  %sum = "stablehlo.reduce"(%scores, %zero) <{dimensions = array<i64: 2>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<8x4x32xf32>, tensor<f32>) -> tensor<8x4xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<8x4xf32>) -> tensor<8x4x32xf32>
  %weights = stablehlo.divide %scores, %sums : tensor<8x4x32xf32>
  %out = stablehlo.dot_general %weights, %k, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x4x32xf32>, tensor<8x32x16xf32>) -> tensor<8x4x16xf32>
  return %out : tensor<8x4x16xf32>
}

// -----

// CHECK: remark: result 0 lives
// CHECK-NEXT: %scores = stablehlo.dot_general
// CHECK: remark: result 0 lives
// CHECK-NEXT: %sum = "stablehlo.reduce"
// CHECK: remark: result 0 lives
// CHECK-NEXT: %out = stablehlo.dot_general
// CHECK-NOT: remark: result 0 lives

func.func @moved(%q: tensor<8x4x16xf32>, %k: tensor<8x32x16xf32>) -> tensor<8x4x16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %scores = stablehlo.dot_general %k, %q, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<8x32x16xf32>, tensor<8x4x16xf32>) -> tensor<8x32x4xf32>
  %moved = stablehlo.transpose %scores, dims = [0, 2, 1] : (tensor<8x32x4xf32>) -> tensor<8x4x32xf32>
  %sum = "stablehlo.reduce"(%moved, %zero) <{dimensions = array<i64: 2>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<8x4x32xf32>, tensor<f32>) -> tensor<8x4xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<8x4xf32>) -> tensor<8x4x32xf32>
  %weights = stablehlo.divide %moved, %sums : tensor<8x4x32xf32>
  %out = stablehlo.dot_general %weights, %k, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<8x4x32xf32>, tensor<8x32x16xf32>) -> tensor<8x4x16xf32>
  return %out : tensor<8x4x16xf32>
}
