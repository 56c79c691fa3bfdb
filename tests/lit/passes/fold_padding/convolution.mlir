// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-fold-padding | FileCheck %s

// What an author pads with zeros in front of a convolution; the padding of the convolution is added.

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.pad
// CHECK: stablehlo.convolution(%arg0, %arg1) {{.*}} window = {stride = [2, 1], pad = {{\[\[}}3, 2], [0, 1]], lhs_dilate = [1, 1]}
func.func @main(%x: tensor<1x16x8x3xf32>, %k: tensor<7x2x3x4xf32>) -> tensor<1x8x8x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [0, 2, 0, 0], high = [0, 2, 1, 0], interior = [0, 0, 0, 0] : (tensor<1x16x8x3xf32>, tensor<f32>) -> tensor<1x20x9x3xf32>
  %1 = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 1], pad = [[1, 0], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x20x9x3xf32>, tensor<7x2x3x4xf32>) -> tensor<1x8x8x4xf32>
  return %1 : tensor<1x8x8x4xf32>
}

// -----

// Padded features are no padding of a window, and ones are none of a convolution.

// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: stablehlo.pad
func.func @main(%x: tensor<1x16x3xf32>, %k: tensor<3x4x4xf32>, %h: tensor<3x3x4xf32>) -> (tensor<1x14x4xf32>, tensor<1x16x4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [0, 0, 0], high = [0, 0, 1], interior = [0, 0, 0] : (tensor<1x16x3xf32>, tensor<f32>) -> tensor<1x16x4xf32>
  %1 = stablehlo.convolution(%0, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x16x4xf32>, tensor<3x4x4xf32>) -> tensor<1x14x4xf32>
  %2 = stablehlo.pad %x, %one, low = [0, 1, 0], high = [0, 1, 0], interior = [0, 0, 0] : (tensor<1x16x3xf32>, tensor<f32>) -> tensor<1x18x3xf32>
  %3 = stablehlo.convolution(%2, %h) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x18x3xf32>, tensor<3x3x4xf32>) -> tensor<1x16x4xf32>
  return %1, %3 : tensor<1x14x4xf32>, tensor<1x16x4xf32>
}
