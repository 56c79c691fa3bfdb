// RUN: stablehlo-alpa-opt %s --alpa-layers-pipeline=micro-batches=2 | FileCheck %s

// What waits for each other does so in each micro-batch: a part of the batch, and what is whole.

// CHECK: %[[D:.+]] = stablehlo.dot_general %[[X:.+]], %[[W:.+]], contracting_dims = [1] x [0] {{.*}} -> tensor<4x4xf32>
// CHECK: stablehlo.optimization_barrier {{.*}} %[[D]], %[[W]] : tensor<4x4xf32>, tensor<4x4xf32>
// CHECK: alpa.collect
// CHECK: %[[G:.+]] = stablehlo.dot_general %[[X]], %{{.+}}, contracting_dims = [0] x [0]
// CHECK: alpa.accumulate %[[G]]
func.func @main(%w: tensor<4x4xf32>, %x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4x4xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1:2 = stablehlo.optimization_barrier %0, %w : tensor<8x4xf32>, tensor<4x4xf32>
  %2 = stablehlo.tanh %1#0 : tensor<8x4xf32>
  %3 = stablehlo.dot_general %2, %1#1, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %4 = stablehlo.dot_general %x, %3, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  return %3, %4 : tensor<8x4xf32>, tensor<4x4xf32>
}
