// RUN: stablehlo-alpa-opt %s --alpa-layers-pipeline=micro-batches=2 | FileCheck %s

// What a loop carries is what it begins with and what every turn makes of it: here zeros, which
// become parts, and a sum over the batch, which becomes a summand.

// CHECK: %[[X:[a-z0-9]+]]: tensor<4x4xf32> {alpa.batch = 0 : i64}
// CHECK: stablehlo.while(
// CHECK-SAME: tensor<i32>, tensor<4x4xf32>, tensor<f32>
// CHECK: do {
// CHECK: stablehlo.add %{{.+}}, %[[X]]{{.*}} : tensor<4x4xf32>
// CHECK: alpa.accumulate %{{.+}} : tensor<f32>
func.func @main(%x: tensor<8x4xf32>) -> (tensor<f32>, tensor<8x4xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %h = stablehlo.broadcast_in_dim %none, dims = [] : (tensor<f32>) -> tensor<8x4xf32>
  %0:3 = stablehlo.while(%i = %zero, %a = %h, %s = %none) : tensor<i32>, tensor<8x4xf32>, tensor<f32>
  cond {
    %1 = stablehlo.compare LT, %i, %three : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.add %a, %x : tensor<8x4xf32>
    %3 = stablehlo.reduce(%2 init: %none) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
    %4 = stablehlo.add %s, %3 : tensor<f32>
    stablehlo.return %1, %2, %4 : tensor<i32>, tensor<8x4xf32>, tensor<f32>
  }
  return %0#2, %0#1 : tensor<f32>, tensor<8x4xf32>
}
