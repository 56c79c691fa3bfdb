// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s

// What an operand is computed from has bytes of its own, be it complex.

// CHECK: remark: scratch of result 0 lives from 1 to 1, 700 % of its bytes
// CHECK-NEXT: %of_real

func.func @main(%a: tensor<128x128xcomplex<f32>>, %b: tensor<128x128xf32>) -> tensor<128x128xf32> {
  %real = stablehlo.real %a : (tensor<128x128xcomplex<f32>>) -> tensor<128x128xf32>
  %of_real = stablehlo.dot_general %real, %b, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  return %of_real : tensor<128x128xf32>
}
