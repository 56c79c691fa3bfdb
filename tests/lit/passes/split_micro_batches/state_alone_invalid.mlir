// RUN: not stablehlo-alpa-opt %s --alpa-split-micro-batches=micro-batches=2 2>&1 | FileCheck %s

// CHECK: no argument can be cut into 2 micro-batches; sizes along dimension 0 are none: all arguments are state, or numbers; pass the batch as an argument where the function makes it itself, or use num_micro_batches=1
func.func @main(%w: tensor<5xf32> {alpa.alias = 0}, %n: tensor<f32>) -> (tensor<5xf32>, tensor<f32>) {
  %0 = stablehlo.tanh %w : tensor<5xf32>
  %1 = stablehlo.tanh %n : tensor<f32>
  return %0, %1 : tensor<5xf32>, tensor<f32>
}
