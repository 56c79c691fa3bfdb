// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -split-input-file -o /dev/null 2>&1 | FileCheck %s --implicit-check-not="remark: result 0 lives"

// Examples and times lie in two orders in what is summed up over them: XLA for TPU stores what it otherwise computes in the product.

// CHECK: remark: result 0 lives from
// CHECK-NEXT: %h = stablehlo.tanh
// CHECK: remark: result 0 lives from
// CHECK-NEXT: %a = stablehlo.dot_general
// CHECK: remark: result 0 lives from
// CHECK-NEXT: %b = stablehlo.dot_general

func.func @main(%x: tensor<8x16x128xf32>, %stack: tensor<16x8x128xf32>, %w: tensor<128x128xf32>) -> (tensor<128x128xf32>, tensor<8x16x128xf32>) {
  %h = stablehlo.tanh %x : tensor<8x16x128xf32>
  %t = stablehlo.transpose %stack, dims = [1, 0, 2] : (tensor<16x8x128xf32>) -> tensor<8x16x128xf32>
  %a = stablehlo.dot_general %t, %h, contracting_dims = [0, 1] x [0, 1] : (tensor<8x16x128xf32>, tensor<8x16x128xf32>) -> tensor<128x128xf32>
  %b = stablehlo.dot_general %h, %w, contracting_dims = [2] x [0] : (tensor<8x16x128xf32>, tensor<128x128xf32>) -> tensor<8x16x128xf32>
  return %a, %b : tensor<128x128xf32>, tensor<8x16x128xf32>
}

// -----

// In one order they are one dimension.

// CHECK: remark: result 0 lives from
// CHECK-NEXT: %a = stablehlo.dot_general
// CHECK: remark: result 0 lives from
// CHECK-NEXT: %b = stablehlo.dot_general

func.func @main(%x: tensor<8x16x128xf32>, %stack: tensor<8x16x128xf32>, %w: tensor<128x128xf32>) -> (tensor<128x128xf32>, tensor<8x16x128xf32>) {
  %h = stablehlo.tanh %x : tensor<8x16x128xf32>
  %a = stablehlo.dot_general %stack, %h, contracting_dims = [0, 1] x [0, 1] : (tensor<8x16x128xf32>, tensor<8x16x128xf32>) -> tensor<128x128xf32>
  %b = stablehlo.dot_general %h, %w, contracting_dims = [2] x [0] : (tensor<8x16x128xf32>, tensor<128x128xf32>) -> tensor<8x16x128xf32>
  return %a, %b : tensor<128x128xf32>, tensor<8x16x128xf32>
}
