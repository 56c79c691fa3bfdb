// RUN: stablehlo-alpa-opt %s --alpa-loop-second-pass=micro-batches=4 | FileCheck %s

// An optimiser that multiplies sums of gradients goes through the batch once.

// CHECK-NOT: stablehlo.while
// CHECK-NOT: alpa.once
func.func @main(%w: tensor<4x4xf32>, %x: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32> loc("step/transpose(jvp())/dot")
  %1 = stablehlo.tanh %0 : tensor<4x4xf32> loc("step/tanh")
  %2 = stablehlo.dot_general %1, %1, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32> loc("step/dot")
  %3 = stablehlo.subtract %w, %2 : tensor<4x4xf32> loc("step/sub")
  return %3 : tensor<4x4xf32>
}
