// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -split-input-file -o /dev/null 2>&1 | FileCheck %s

// The dimension of the one example is left out of what is reduced, which comes between %wide and its sums: %wide is stored. Of
// two examples all that reads it widens %scores again.

// CHECK: remark: result 0 lives
// CHECK-NEXT: %scores = stablehlo.dot_general
// CHECK: remark: result 0 lives
// CHECK-NEXT: %wide = stablehlo.convert
// CHECK: remark: result 0 lives
// CHECK-NEXT: %sum = "stablehlo.reduce"
// CHECK: remark: result 0 lives
// CHECK-NEXT: %weights =

func.func @one(%q: tensor<1x4x16xbf16>, %k: tensor<1x32x16xbf16>) -> tensor<1x4x32xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %scores = stablehlo.dot_general %k, %q, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<1x32x16xbf16>, tensor<1x4x16xbf16>) -> tensor<1x32x4xbf16>
  %moved = stablehlo.transpose %scores, dims = [0, 2, 1] : (tensor<1x32x4xbf16>) -> tensor<1x4x32xbf16>
  %wide = stablehlo.convert %moved : (tensor<1x4x32xbf16>) -> tensor<1x4x32xf32>
  %sum = "stablehlo.reduce"(%wide, %zero) <{dimensions = array<i64: 2>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<1x4x32xf32>, tensor<f32>) -> tensor<1x4xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<1x4xf32>) -> tensor<1x4x32xf32>
  %weights = stablehlo.divide %wide, %sums : tensor<1x4x32xf32>
  return %weights : tensor<1x4x32xf32>
}

// -----

// CHECK: remark: result 0 lives
// CHECK-NEXT: %scores = stablehlo.dot_general
// CHECK: remark: result 0 lives
// CHECK-NEXT: %sum = "stablehlo.reduce"
// CHECK: remark: result 0 lives
// CHECK-NEXT: %weights =

func.func @two(%q: tensor<2x4x16xbf16>, %k: tensor<2x32x16xbf16>) -> tensor<2x4x32xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %scores = stablehlo.dot_general %k, %q, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<2x32x16xbf16>, tensor<2x4x16xbf16>) -> tensor<2x32x4xbf16>
  %moved = stablehlo.transpose %scores, dims = [0, 2, 1] : (tensor<2x32x4xbf16>) -> tensor<2x4x32xbf16>
  %wide = stablehlo.convert %moved : (tensor<2x4x32xbf16>) -> tensor<2x4x32xf32>
  %sum = "stablehlo.reduce"(%wide, %zero) <{dimensions = array<i64: 2>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<2x4x32xf32>, tensor<f32>) -> tensor<2x4xf32>
  %sums = stablehlo.broadcast_in_dim %sum, dims = [0, 1] : (tensor<2x4xf32>) -> tensor<2x4x32xf32>
  %weights = stablehlo.divide %wide, %sums : tensor<2x4x32xf32>
  return %weights : tensor<2x4x32xf32>
}
