// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -split-input-file -o /dev/null 2>&1 | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -split-input-file -o /dev/null 2>&1 | FileCheck --check-prefix=TPU %s

// The ends of a strided convolution of an even size differ: its input is padded, once for it and for the gradient of its
// kernel. XLA for TPU pads while it reads. Kernels are transposed (transposed_kernels.mlir).

// TPU-NOT: copy of

// CHECK: remark: copy of argument 0 lives from 0 to 2, 126 % of its bytes
// CHECK-NOT: copy of argument 0

func.func @strided(%x: tensor<4x8x8x16xf32>, %w: tensor<3x3x16x16xf32>) -> (tensor<4x4x4x16xf32>, tensor<3x3x16x16xf32>) {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [2, 2], pad = [[0, 1], [0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x8x8x16xf32>, tensor<3x3x16x16xf32>) -> tensor<4x4x4x16xf32>
  %dy = stablehlo.dot_general %y, %y, batching_dims = [0, 1, 2] x [0, 1, 2], contracting_dims = [3] x [3] : (tensor<4x4x4x16xf32>, tensor<4x4x4x16xf32>) -> tensor<4x4x4xf32>
  %dw = stablehlo.convolution(%x, %y) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {pad = [[0, 1], [0, 1]], rhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x8x8x16xf32>, tensor<4x4x4x16xf32>) -> tensor<3x3x16x16xf32>
  stablehlo.custom_call @show(%dy) {has_side_effect = true} : (tensor<4x4x4xf32>) -> ()
  return %y, %dw : tensor<4x4x4x16xf32>, tensor<3x3x16x16xf32>
}

// -----

// Ends that are alike, and the gradient of an input: a kernel that is reversed in front of the convolution.

// CHECK-NOT: copy of argument 0

func.func @even(%x: tensor<4x8x8x16xf32>, %w: tensor<3x3x16x16xf32>) -> (tensor<4x8x8x16xf32>, tensor<4x16x16x16xf32>) {
  %y = stablehlo.convolution(%x, %w) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x8x8x16xf32>, tensor<3x3x16x16xf32>) -> tensor<4x8x8x16xf32>
  %back = stablehlo.reverse %w, dims = [0, 1] : tensor<3x3x16x16xf32>
  %dx = stablehlo.convolution(%y, %back) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {pad = [[2, 1], [2, 1]], lhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x8x8x16xf32>, tensor<3x3x16x16xf32>) -> tensor<4x16x16x16xf32>
  return %y, %dx : tensor<4x8x8x16xf32>, tensor<4x16x16x16xf32>
}

// -----

// XLA does not see it where the kernel was gathered on the way, and writes the input with its holes: 18 x 18 numbers of 8 x 8.

// CHECK: remark: copy of argument 0 lives from 2 to 2, 506 % of its bytes

func.func @gathered(%dy: tensor<4x8x8x16xf32>, %part: tensor<3x3x8x16xf32>) -> tensor<4x16x16x16xf32> {
  %back = stablehlo.reverse %part, dims = [0, 1] : tensor<3x3x8x16xf32>
  %w = "stablehlo.all_gather"(%back) <{all_gather_dim = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<3x3x8x16xf32>) -> tensor<3x3x16x16xf32>
  %dx = stablehlo.convolution(%dy, %w) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {pad = [[2, 1], [2, 1]], lhs_dilate = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x8x8x16xf32>, tensor<3x3x16x16xf32>) -> tensor<4x16x16x16xf32>
  return %dx : tensor<4x16x16x16xf32>
}
