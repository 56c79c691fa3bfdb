// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s --check-prefix=GPU

// XLA for TPU computes a hyperbolic tangent behind a bias in the operands of both products that read it, and stores what the first product made; so it does in front of a convolution.

// CHECK: remark: result 0 lives from
// CHECK-NEXT: %hidden = stablehlo.dot_general
// CHECK-NOT: %active = stablehlo.tanh
// CHECK-NOT: %rectified = stablehlo.maximum
// GPU: remark: result 0 lives from
// GPU: %active = stablehlo.tanh
// GPU: %rectified = stablehlo.maximum

func.func @main(%x: tensor<8x16xbf16>, %w: tensor<16x16xbf16>, %b: tensor<16xbf16>, %v: tensor<8x16xbf16>,
                %image: tensor<2x8x8x4xf32>, %kernel: tensor<3x3x4x4xf32>)
    -> (tensor<8x16xbf16>, tensor<16x16xbf16>, tensor<2x8x8x4xf32>) {
  %hidden = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xbf16>, tensor<16x16xbf16>) -> tensor<8x16xbf16>
  %bias = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<16xbf16>) -> tensor<8x16xbf16>
  %biased = stablehlo.add %hidden, %bias : tensor<8x16xbf16>
  %active = stablehlo.tanh %biased : tensor<8x16xbf16>
  %out = stablehlo.dot_general %active, %w, contracting_dims = [1] x [0] : (tensor<8x16xbf16>, tensor<16x16xbf16>) -> tensor<8x16xbf16>
  %gradient = stablehlo.dot_general %active, %v, contracting_dims = [0] x [0] : (tensor<8x16xbf16>, tensor<8x16xbf16>) -> tensor<16x16xbf16>
  %zero = stablehlo.constant dense<0.0> : tensor<2x8x8x4xf32>
  %rectified = stablehlo.maximum %image, %zero : tensor<2x8x8x4xf32>
  %filtered = stablehlo.convolution(%rectified, %kernel) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x8x8x4xf32>, tensor<3x3x4x4xf32>) -> tensor<2x8x8x4xf32>
  return %out, %gradient, %filtered : tensor<8x16xbf16>, tensor<16x16xbf16>, tensor<2x8x8x4xf32>
}
