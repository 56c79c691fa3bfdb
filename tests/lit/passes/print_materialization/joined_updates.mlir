// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -split-input-file -o /dev/null 2>&1 | FileCheck %s

// What is reversed of %part is computed with its update in one fusion, so that the gather, which %dx waits for, waits for
// the gradient %dw as well.

// CHECK: remark: result 0 lives from 0 to 1
// CHECK-NEXT: %dw = stablehlo.dot_general
// CHECK: remark: result 0 lives from 5 to 6
// CHECK-NEXT: %dx = stablehlo.dot_general

func.func @reversed(%x: tensor<8x8xf32>, %dy: tensor<8x8xf32>, %part: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8x8xf32>) {
  %dw = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %sum = "stablehlo.reduce_scatter"(%dw) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<8x8xf32>) -> tensor<4x8xf32>
  %back = stablehlo.reverse %part, dims = [1] : tensor<4x8xf32>
  %w = "stablehlo.all_gather"(%back) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
  %dx = stablehlo.dot_general %dy, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %dx2 = stablehlo.dot_general %dx, %x, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %new = stablehlo.add %part, %sum : tensor<4x8xf32>
  return %new, %dx2 : tensor<4x8xf32>, tensor<8x8xf32>
}

// -----

// Nothing is computed of what is gathered as it is: the gradient comes behind.

// CHECK: remark: result 0 lives from 3 to 4
// CHECK-NEXT: %dw = stablehlo.dot_general
// CHECK: remark: result 0 lives from 1 to 2
// CHECK-NEXT: %dx = stablehlo.dot_general

func.func @plain(%x: tensor<8x8xf32>, %dy: tensor<8x8xf32>, %part: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8x8xf32>) {
  %dw = stablehlo.dot_general %x, %dy, contracting_dims = [0] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %sum = "stablehlo.reduce_scatter"(%dw) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<8x8xf32>) -> tensor<4x8xf32>
  %w = "stablehlo.all_gather"(%part) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
  %dx = stablehlo.dot_general %dy, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %dx2 = stablehlo.dot_general %dx, %x, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %new = stablehlo.add %part, %sum : tensor<4x8xf32>
  return %new, %dx2 : tensor<4x8xf32>, tensor<8x8xf32>
}

// -----

// Nor where the update depends on what is gathered, as a kernel of the forward phase.

// CHECK: remark: result 0 lives from 5 to 6
// CHECK-NEXT: %dw = stablehlo.dot_general
// CHECK: remark: result 0 lives from 3 to 4
// CHECK-NEXT: %dx = stablehlo.dot_general

func.func @forward(%x: tensor<8x8xf32>, %part: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<8x8xf32>) {
  %back = stablehlo.reverse %part, dims = [1] : tensor<4x8xf32>
  %w = "stablehlo.all_gather"(%back) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %dw = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %sum = "stablehlo.reduce_scatter"(%dw) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<8x8xf32>) -> tensor<4x8xf32>
  %dx = stablehlo.dot_general %y, %x, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %dx2 = stablehlo.dot_general %dx, %x, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %new = stablehlo.add %part, %sum : tensor<4x8xf32>
  return %new, %dx2 : tensor<4x8xf32>, tensor<8x8xf32>
}
