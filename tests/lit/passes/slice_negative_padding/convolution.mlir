// RUN: stablehlo-alpa-opt %s -alpa-slice-negative-padding | FileCheck %s

// CHECK-LABEL: func @cut_off
// CHECK: %[[SLICE:.*]] = stablehlo.slice %arg0 [0:8, 0:11, 2:11, 0:2]
// CHECK: stablehlo.convolution(%[[SLICE]], %arg1)
// CHECK-SAME{LITERAL}: pad = [[0, 0], [0, 1]]
func.func @cut_off(%x: tensor<8x11x11x2xf32>, %k: tensor<3x2x2x4xf32>)
    -> tensor<8x9x9x4xf32> {
  %0 = stablehlo.convolution(%x, %k)
      dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {pad = [[0, 0], [-2, 1]]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<8x11x11x2xf32>, tensor<3x2x2x4xf32>) -> tensor<8x9x9x4xf32>
  return %0 : tensor<8x9x9x4xf32>
}

// Of 4 elements with two holes between them, 10 places, 4 are cut off at the
// low end, two elements and their holes but for two, and the last one.
// CHECK-LABEL: func @with_holes
// CHECK: %[[SLICE:.*]] = stablehlo.slice %arg0 [0:1, 2:3, 0:2]
// CHECK: stablehlo.convolution(%[[SLICE]], %arg1)
// CHECK-SAME{LITERAL}: pad = [[2, 2]], lhs_dilate = [3]
func.func @with_holes(%x: tensor<1x4x2xf32>, %k: tensor<2x2x4xf32>)
    -> tensor<1x4x4xf32> {
  %0 = stablehlo.convolution(%x, %k)
      dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
      window = {pad = [[-4, -1]], lhs_dilate = [3]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x4x2xf32>, tensor<2x2x4xf32>) -> tensor<1x4x4xf32>
  return %0 : tensor<1x4x4xf32>
}

// CHECK-LABEL: func @padded
// CHECK-NOT: slice
// CHECK-LABEL: func @nothing_left
// CHECK-NOT: slice
func.func @padded(%x: tensor<1x4x2xf32>, %k: tensor<2x2x4xf32>)
    -> tensor<1x6x4xf32> {
  %0 = stablehlo.convolution(%x, %k)
      dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
      window = {pad = [[2, 1]]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x4x2xf32>, tensor<2x2x4xf32>) -> tensor<1x6x4xf32>
  return %0 : tensor<1x6x4xf32>
}
func.func @nothing_left(%x: tensor<1x4x2xf32>, %k: tensor<2x2x4xf32>)
    -> tensor<1x3x4xf32> {
  %0 = stablehlo.convolution(%x, %k)
      dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f],
      window = {pad = [[-5, 5]]}
      {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<1x4x2xf32>, tensor<2x2x4xf32>) -> tensor<1x3x4xf32>
  return %0 : tensor<1x3x4xf32>
}
