// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s

// XLA for TPU adds a bias and what was there before to a product where that is made, and sums up rows of it: the product itself is not written, and the sum is not read again. What takes the rows' sums is a kernel of its own, and so is what needs a later product. A product that something else reads is written.

// CHECK: remark: reads 98304 bytes, writes 0, at point
// CHECK-NEXT: %hidden = stablehlo.dot_general
// CHECK: remark: reads 512 bytes, writes 65536, at point
// CHECK-NEXT: %residual = stablehlo.add
// CHECK: remark: reads 0 bytes, writes 512, at point
// CHECK-NEXT: %sums =
// CHECK: remark: reads 66048 bytes, writes 65536, at point
// CHECK-NEXT: %parts = stablehlo.divide
// CHECK: remark: reads 98304 bytes, writes 65536, at point
// CHECK-NEXT: %returned = stablehlo.dot_general
// CHECK: remark: reads 98304 bytes, writes 0, at point
// CHECK-NEXT: %later = stablehlo.dot_general
// CHECK: remark: reads 65536 bytes, writes 65536, at point
// CHECK-NEXT: %both = stablehlo.multiply

func.func @main(%x: tensor<128x128xf32>, %w: tensor<128x128xf32>, %b: tensor<128xf32>)
    -> (tensor<128x128xf32>, tensor<128x128xf32>, tensor<128x128xf32>, tensor<128x128xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %hidden = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %bias = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<128xf32>) -> tensor<128x128xf32>
  %biased = stablehlo.add %hidden, %bias : tensor<128x128xf32>
  %residual = stablehlo.add %biased, %x : tensor<128x128xf32>
  %sums = stablehlo.reduce(%residual init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<128x128xf32>, tensor<f32>) -> tensor<128xf32>
  %rows = stablehlo.broadcast_in_dim %sums, dims = [0] : (tensor<128xf32>) -> tensor<128x128xf32>
  %parts = stablehlo.divide %residual, %rows : tensor<128x128xf32>
  %returned = stablehlo.dot_general %x, %w, contracting_dims = [0] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %later = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %both = stablehlo.multiply %returned, %later : tensor<128x128xf32>
  return %residual, %parts, %returned, %both : tensor<128x128xf32>, tensor<128x128xf32>, tensor<128x128xf32>, tensor<128x128xf32>
}
