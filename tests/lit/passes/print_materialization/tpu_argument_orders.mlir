// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=cuda -o /dev/null 2>&1 | FileCheck %s --check-prefix=GPU

// XLA for TPU copies an argument that is computed elementwise with a product whose rows a transposition has split (%t) into the order in
// which that was made. One that is computed with what lies as it does (%q), or with the transpose of a matrix (%g), is read as it is.

// CHECK-COUNT-1: copy of argument 0 lives from 0 to
// CHECK-NOT: copy of
// GPU-NOT: copy of argument

func.func @main(%a: tensor<8x256x128xf32>, %b: tensor<8x256x128xf32>, %y: tensor<8x128x512xf32>, %u: tensor<8x256x512xf32>, %w: tensor<512x256xf32>,
    %v: tensor<512x128xf32>, %c: tensor<512x8x256xf32>) -> (tensor<f32>, tensor<f32>, tensor<512x8x256xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %p = stablehlo.dot_general %y, %w, contracting_dims = [2] x [0] : (tensor<8x128x512xf32>, tensor<512x256xf32>) -> tensor<8x128x256xf32>
  %t = stablehlo.transpose %p, dims = [0, 2, 1] : (tensor<8x128x256xf32>) -> tensor<8x256x128xf32>
  %m = stablehlo.multiply %a, %t : tensor<8x256x128xf32>
  %q = stablehlo.dot_general %u, %v, contracting_dims = [2] x [0] : (tensor<8x256x512xf32>, tensor<512x128xf32>) -> tensor<8x256x128xf32>
  %n = stablehlo.multiply %b, %q : tensor<8x256x128xf32>
  %r = stablehlo.reduce(%m init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<8x256x128xf32>, tensor<f32>) -> tensor<f32>
  %s = stablehlo.reduce(%n init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<8x256x128xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %a, %v, contracting_dims = [2] x [1] : (tensor<8x256x128xf32>, tensor<512x128xf32>) -> tensor<8x256x512xf32>
  %h = stablehlo.transpose %g, dims = [2, 0, 1] : (tensor<8x256x512xf32>) -> tensor<512x8x256xf32>
  %i = stablehlo.subtract %c, %h : tensor<512x8x256xf32>
  return %r, %s, %i : tensor<f32>, tensor<f32>, tensor<512x8x256xf32>
}
