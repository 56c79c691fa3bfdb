// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-import | FileCheck %s

// What is stacked behind a tensor without elements is all of the stack.

// CHECK-LABEL: @main
// CHECK: %[[ALL:.+]] = stablehlo.concatenate %arg0, %arg1, dim = 0
// CHECK: return %[[ALL]]
func.func @main(%x: tensor<1x4xf32>, %y: tensor<2x4xf32>) -> tensor<3x4xf32> {
  %0 = stablehlo.constant dense<> : tensor<0x4xf32>
  %1 = stablehlo.concatenate %0, %x, %y, dim = 0 : (tensor<0x4xf32>, tensor<1x4xf32>, tensor<2x4xf32>) -> tensor<3x4xf32>
  return %1 : tensor<3x4xf32>
}

// -----

// Nor has it a part that a micro-batch could have: it is made anew, and around it is the padding alone.

// CHECK-LABEL: @main
// CHECK: %[[PADDING:.+]] = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<8x3xf32>
// CHECK: %[[NONE:.+]] = stablehlo.constant dense<> : tensor<8x0xf32>
// CHECK: return %[[PADDING]], %[[NONE]]
func.func @main(%x: tensor<8x4xf32>, %value: tensor<f32>) -> (tensor<8x3xf32>, tensor<8x0xf32>) {
  %0 = stablehlo.slice %x [0:8, 2:2] : (tensor<8x4xf32>) -> tensor<8x0xf32>
  %1 = stablehlo.multiply %0, %0 : tensor<8x0xf32>
  %2 = stablehlo.pad %1, %value, low = [0, 1], high = [0, 2], interior = [0, 0] : (tensor<8x0xf32>, tensor<f32>) -> tensor<8x3xf32>
  %3 = stablehlo.sine %1 : tensor<8x0xf32>
  return %2, %3 : tensor<8x3xf32>, tensor<8x0xf32>
}
