// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s

// No kernel waits for the gradient %dw, so that it comes behind %dx2, which %dx3 waits for; and as it could have been computed
// first, it comes behind %dx3, which none waits for either: XLA's order is made from the end of the program backwards. What a
// collective sends stays until its result is needed. A call without results (%dx is shown) is a kernel that no other waits
// for as well.

// CHECK: remark: result 0 lives from 4 to 5
// CHECK-NEXT: %dw = stablehlo.dot_general
// CHECK: remark: result 0 lives from 5 to 6
// CHECK-NEXT: %sum = "stablehlo.all_reduce"
// CHECK: remark: result 0 lives from 0 to 3
// CHECK-NEXT: %dx = stablehlo.dot_general
// CHECK: remark: result 0 lives from 1 to 2
// CHECK-NEXT: %dx2 = stablehlo.dot_general

func.func @main(%x: tensor<8x8xf32>, %dy: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %dw = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %sum = "stablehlo.all_reduce"(%dw) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %dx = stablehlo.dot_general %dy, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %dx2 = stablehlo.dot_general %dx, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %dx3 = stablehlo.dot_general %dx2, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  stablehlo.custom_call @show(%dx) {has_side_effect = true} : (tensor<8x8xf32>) -> ()
  %1 = stablehlo.negate %sum : tensor<8x8xf32>
  return %1, %dx3 : tensor<8x8xf32>, tensor<8x8xf32>
}
