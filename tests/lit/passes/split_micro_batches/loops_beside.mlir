// RUN: stablehlo-alpa-opt %s --alpa-layers-pipeline=micro-batches=2 | FileCheck %s

// A loop hands on activations of a micro-batch and, beside them, what is the same for all: it leaves the micro-batches as a
// summand of the first, and what follows from it too.

// CHECK: %[[LOOP:.+]]:3 = stablehlo.while
// CHECK: %[[TWICE:.+]] = stablehlo.add %[[LOOP]]#2, %[[LOOP]]#2
// CHECK: alpa.accumulate {{.*}} : tensor<f32>
// CHECK-NOT: stablehlo.while
func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>, %s: tensor<f32>) -> (tensor<8x4xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %end = stablehlo.constant dense<3> : tensor<i32>
  %0:3 = "stablehlo.while"(%zero, %x, %s) ({
  ^bb0(%i: tensor<i32>, %a: tensor<8x4xf32>, %b: tensor<f32>):
    %2 = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %a: tensor<8x4xf32>, %b: tensor<f32>):
    %2 = stablehlo.add %i, %one : tensor<i32>
    %3 = stablehlo.dot_general %a, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %4 = stablehlo.tanh %b : tensor<f32>
    stablehlo.return %2, %3, %4 : tensor<i32>, tensor<8x4xf32>, tensor<f32>
  }) : (tensor<i32>, tensor<8x4xf32>, tensor<f32>) -> (tensor<i32>, tensor<8x4xf32>, tensor<f32>)
  %1 = stablehlo.add %0#2, %0#2 : tensor<f32>
  return %0#1, %1 : tensor<8x4xf32>, tensor<f32>
}
