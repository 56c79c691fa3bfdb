// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=donated=0 -o /dev/null 2>&1 | FileCheck %s

// Without collectives no gradient is put off: %dw stays where it is, and the update of %w follows it.

// CHECK: remark: argument 0 lives from 0 to 1
// CHECK: remark: result 0 lives from 0 to 1
// CHECK-NEXT: %dw = stablehlo.dot_general
// CHECK: remark: result 0 lives from 2 to 3
// CHECK-NEXT: %dx = stablehlo.dot_general

func.func @main(%w: tensor<8x8xf32>, %x: tensor<8x8xf32>, %dy: tensor<8x8xf32>, %v: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %dw = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %dx = stablehlo.dot_general %dy, %v, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %dx2 = stablehlo.dot_general %dx, %v, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %new = stablehlo.subtract %w, %dw : tensor<8x8xf32>
  return %new, %dx2 : tensor<8x8xf32>, tensor<8x8xf32>
}
