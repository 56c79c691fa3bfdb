// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s

// What reads %product comes together in %sum, whose fusion computes it once. Two fusions read %other.

// CHECK-NOT: %product =
// CHECK: remark: result 0 lives
// CHECK-NEXT: %sum =
// CHECK-NOT: %product =
// CHECK: remark: result 0 lives
// CHECK-NEXT: %other =

func.func @main(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>) {
  %product = stablehlo.multiply %x, %y : tensor<8x16xf32>
  %exp = stablehlo.exponential %product : tensor<8x16xf32>
  %neg = stablehlo.negate %product : tensor<8x16xf32>
  %sum = stablehlo.add %exp, %neg : tensor<8x16xf32>
  %other = stablehlo.divide %x, %y : tensor<8x16xf32>
  %a = stablehlo.exponential %other : tensor<8x16xf32>
  %b = stablehlo.negate %other : tensor<8x16xf32>
  return %sum, %a, %b : tensor<8x16xf32>, tensor<8x16xf32>, tensor<8x16xf32>
}
