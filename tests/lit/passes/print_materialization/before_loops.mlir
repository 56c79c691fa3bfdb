// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s

// No kernel waits for the gradient %dw, but it is not put off behind a loop. Its sum is, which nothing needs before.

// CHECK: remark: result 0 lives from 1 to 10
// CHECK-NEXT: %dw = stablehlo.dot_general

func.func @main(%x: tensor<8x8xf32>, %dy: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %dw = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %sum = "stablehlo.all_reduce"(%dw) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %1:3 = stablehlo.while(%i = %zero, %v = %dy, %u = %x) : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
  cond {
    %end = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %d = stablehlo.dot_general %v, %u, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    stablehlo.return %j, %d, %u : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
  }
  return %sum, %1#1 : tensor<8x8xf32>, tensor<8x8xf32>
}
