// RUN: stablehlo-alpa-opt %s --alpa-layers-pipeline=micro-batches=2 | FileCheck %s

// The results of branches meet: parts of the batch in each, and summands, among which are zeros.

// CHECK: %[[X:[a-z0-9]+]]: tensor<4x4xf32> {alpa.batch = 2 : i64}
// CHECK: %[[R:.+]]:2 = "stablehlo.if"
// CHECK: stablehlo.reduce(%[[X]] {{.*}} (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: stablehlo.tanh %[[X]] : tensor<4x4xf32>
// CHECK: alpa.collect %[[R]]#0 {{.*}} along 0
// CHECK: alpa.accumulate %[[R]]#1 {{.*}} : tensor<4xf32>
func.func @main(%p: tensor<i1>, %w: tensor<4x4xf32>, %x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %0:2 = "stablehlo.if"(%p) ({
    %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %2 = stablehlo.reduce(%x init: %none) applies stablehlo.add across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
    stablehlo.return %1, %2 : tensor<8x4xf32>, tensor<4xf32>
  }, {
    %1 = stablehlo.tanh %x : tensor<8x4xf32>
    %2 = stablehlo.broadcast_in_dim %none, dims = [] : (tensor<f32>) -> tensor<4xf32>
    stablehlo.return %1, %2 : tensor<8x4xf32>, tensor<4xf32>
  }) : (tensor<i1>) -> (tensor<8x4xf32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<8x4xf32>, tensor<4xf32>
}
