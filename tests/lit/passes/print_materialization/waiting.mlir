// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s

// The backward phase waits for the gradient %dw2 (`alpa-order-gradients`), which is computed where it stands: what it is made of, %h, ends
// there. XLA joins its sum over devices with that of the next gradient, so that it lives as long as the sum of %dw1 does.

// CHECK: remark: result 0 lives from 0 to 1
// CHECK-NEXT: %h = stablehlo.dot_general
// CHECK: remark: result 0 lives from 1 to 7
// CHECK-NEXT: %dw2 = stablehlo.dot_general
// CHECK: remark: result 0 lives from 6 to 8
// CHECK-NEXT: %sum2 = "stablehlo.all_reduce"
// CHECK: remark: result 0 lives from 5 to 7
// CHECK-NEXT: %dw1 = stablehlo.dot_general

func.func @main(%x: tensor<8x8xf32>, %dy: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %dw2 = stablehlo.dot_general %h, %dy, contracting_dims = [0] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %dx = stablehlo.dot_general %dy, %w, contracting_dims = [1] x [1] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %dx_later, %dw2_there = stablehlo.optimization_barrier %dx, %dw2 : tensor<8x8xf32>, tensor<8x8xf32>
  %sum2 = "stablehlo.all_reduce"(%dw2_there) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %dx1 = stablehlo.dot_general %dx_later, %w, contracting_dims = [1] x [1] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %dw1 = stablehlo.dot_general %x, %dx1, contracting_dims = [0] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %sum1 = "stablehlo.all_reduce"(%dw1) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %sum2, %sum1 : tensor<8x8xf32>, tensor<8x8xf32>
}
