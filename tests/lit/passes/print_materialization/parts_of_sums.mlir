// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s

// Slices that together are a sum compute their part of it; a sum that is read twice is stored.

// CHECK-NOT: %cut =
// CHECK: remark: result 0 lives from 3 to 5
// CHECK-NEXT: %whole = stablehlo.subtract

func.func @main(%x: tensor<8x16xf32>, %y: tensor<8x16xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x16xf32>, tensor<8x16xf32>) {
  %cut = stablehlo.add %x, %y : tensor<8x16xf32>
  %left = stablehlo.slice %cut [0:8, 0:8] : (tensor<8x16xf32>) -> tensor<8x8xf32>
  %right = stablehlo.slice %cut [0:8, 8:16] : (tensor<8x16xf32>) -> tensor<8x8xf32>
  %whole = stablehlo.subtract %x, %y : tensor<8x16xf32>
  %a = stablehlo.exponential %whole : tensor<8x16xf32>
  %b = stablehlo.negate %whole : tensor<8x16xf32>
  return %left, %right, %a, %b : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x16xf32>, tensor<8x16xf32>
}
