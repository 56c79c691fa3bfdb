// RUN: stablehlo-alpa-opt %s --alpa-layers-pipeline=micro-batches=2 | FileCheck %s

// A mask that is handed on beside activations, as what a layer computes again begins, is as light as before: all of it is
// counted, and its own part weighs the activations.

// CHECK: tensor<4x4xf32> {alpa.batch = 0 : i64}, {{.*}}tensor<4xf32> {alpa.batch = 2 : i64}, {{.*}}tensor<8xf32> {alpa.input = 2 : i64}
// CHECK: %[[B:.+]]:3 = stablehlo.optimization_barrier {{.*}} : tensor<4x4xf32>, tensor<4xf32>, tensor<8xf32>
// CHECK: stablehlo.reduce(%[[B]]#2 {{.*}}tensor<8xf32>
func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>, %m: tensor<8xf32>) -> tensor<8x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1:2 = stablehlo.optimization_barrier %0, %m : tensor<8x4xf32>, tensor<8xf32>
  %2 = stablehlo.reduce(%1#1 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %3 = stablehlo.broadcast_in_dim %1#1, dims = [0] : (tensor<8xf32>) -> tensor<8x4xf32>
  %4 = stablehlo.broadcast_in_dim %2, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
  %5 = stablehlo.divide %3, %4 : tensor<8x4xf32>
  %6 = stablehlo.multiply %5, %1#0 : tensor<8x4xf32>
  %7 = stablehlo.dot_general %6, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %7 : tensor<8x4xf32>
}
