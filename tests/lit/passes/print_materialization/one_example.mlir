// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s

// The bias is repeated along the rows of the one example, which the product does not do in its operand: %sum is stored.

// CHECK: remark: result 0 lives
// CHECK-NEXT: %sum = stablehlo.add

func.func @main(%x: tensor<1x8x16xf32>, %b: tensor<16xf32>, %w: tensor<16x4xf32>) -> tensor<1x8x4xf32> {
  %bias = stablehlo.reshape %b : (tensor<16xf32>) -> tensor<1x1x16xf32>
  %repeated = stablehlo.broadcast_in_dim %bias, dims = [0, 1, 2] : (tensor<1x1x16xf32>) -> tensor<1x8x16xf32>
  %sum = stablehlo.add %x, %repeated : tensor<1x8x16xf32>
  %out = stablehlo.dot_general %sum, %w, contracting_dims = [2] x [0] : (tensor<1x8x16xf32>, tensor<16x4xf32>) -> tensor<1x8x4xf32>
  return %out : tensor<1x8x4xf32>
}
