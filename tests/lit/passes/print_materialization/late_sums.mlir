// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s

// No kernel waits for %bias, the sum of %dy's columns, which comes behind the gradient %dw and its sum over devices. What a
// kernel waits for, %scale, stays, and so do sums of rows.

// CHECK: remark: result 0 lives from 1 to 6
// CHECK-NEXT: %dy = stablehlo.dot_general
// CHECK: remark: result 0 lives from 6 to 7
// CHECK-NEXT: %bias = "stablehlo.reduce"
// CHECK: remark: result 0 lives from 2 to 7
// CHECK-NEXT: %row = "stablehlo.reduce"
// CHECK: remark: result 0 lives from 4 to 6
// CHECK-NEXT: %dw = stablehlo.dot_general

func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %dy = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %bias = "stablehlo.reduce"(%dy, %zero) <{dimensions = array<i64: 0>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %row = "stablehlo.reduce"(%dy, %zero) <{dimensions = array<i64: 1>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %dw = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %sum = "stablehlo.all_reduce"(%dw) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %dx = stablehlo.dot_general %dy, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %sum, %bias, %row, %dx : tensor<8x8xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x8xf32>
}
