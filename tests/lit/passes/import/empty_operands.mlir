// RUN: stablehlo-alpa-opt %s -alpa-import | FileCheck %s

// What is stacked behind a tensor without elements is all of the stack.

// CHECK-LABEL: @main
// CHECK: %[[ALL:.+]] = stablehlo.concatenate %arg0, %arg1, dim = 0
// CHECK: return %[[ALL]]
func.func @main(%x: tensor<1x4xf32>, %y: tensor<2x4xf32>) -> tensor<3x4xf32> {
  %0 = stablehlo.constant dense<> : tensor<0x4xf32>
  %1 = stablehlo.concatenate %0, %x, %y, dim = 0 : (tensor<0x4xf32>, tensor<1x4xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}
