// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s

// The gradient %dw is computed behind all that a kernel waits for, and so is the slice of %h that it alone is made of: all of %h
// stays until then.

// CHECK: remark: result 0 lives from 0 to 4
// CHECK-NEXT: %h = stablehlo.dot_general
// CHECK: remark: result 0 lives from 4 to 5
// CHECK-NEXT: %part = stablehlo.slice

func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>, %v: tensor<16x16xf32>) -> (tensor<8x16xf32>, tensor<4x16xf32>) {
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %g = stablehlo.dot_general %h, %v, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %part = stablehlo.slice %h [0:8, 0:4] : (tensor<8x16xf32>) -> tensor<8x4xf32>
  %dw = stablehlo.dot_general %part, %g, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
  %sum = "stablehlo.all_reduce"(%dw) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<4x16xf32>) -> tensor<4x16xf32>
  %dh = stablehlo.dot_general %g, %v, contracting_dims = [1] x [1] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %dx = stablehlo.dot_general %dh, %w, contracting_dims = [1] x [1] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  return %dx, %sum : tensor<8x16xf32>, tensor<4x16xf32>
}
