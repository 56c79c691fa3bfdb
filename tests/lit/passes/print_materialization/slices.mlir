// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s

// Of %dot, 4096 bytes, the slice reads 512 and the position 4, whatever lies between them. Two fusions
// read %neg, which is stored for the product.

// CHECK: remark: reads 5120 bytes, writes 4096, at point 1
// CHECK-NEXT: %dot = stablehlo.dot_general
// CHECK: remark: reads 516 bytes, writes 512, at point 4
// CHECK-NEXT: %neg = stablehlo.negate
// CHECK: remark: reads 1536 bytes, writes 512, at point 6
// CHECK-NEXT: %out = stablehlo.dot_general
// CHECK: remark: reads 0 bytes, writes 512, at point 5
// CHECK-NEXT: %exp = stablehlo.exponential
func.func @main(%x: tensor<64x16xf32>, %w: tensor<16x16xf32>, %i: tensor<i32>) -> (tensor<8x16xf32>, tensor<8x16xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %dot = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x16xf32>, tensor<16x16xf32>) -> tensor<64x16xf32>
  %tanh = stablehlo.tanh %dot : tensor<64x16xf32>
  %part = stablehlo.dynamic_slice %tanh, %i, %zero, sizes = [8, 16] : (tensor<64x16xf32>, tensor<i32>, tensor<i32>) -> tensor<8x16xf32>
  %neg = stablehlo.negate %part : tensor<8x16xf32>
  %out = stablehlo.dot_general %neg, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %exp = stablehlo.exponential %neg : tensor<8x16xf32>
  return %out, %exp : tensor<8x16xf32>, tensor<8x16xf32>
}
