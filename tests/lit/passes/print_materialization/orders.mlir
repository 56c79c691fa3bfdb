// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -split-input-file -o /dev/null 2>&1 | FileCheck %s

// What is gathered along columns lies by columns, of the argument too. A product takes it so, and a loop a copy by rows
// while it runs.

// CHECK: remark: copy of result 0 lives from 3 to 10
// CHECK-NEXT: %w = "stablehlo.all_gather"
// CHECK: remark: copy of argument 0 lives from 0 to 0
// CHECK: remark: result 0 lives from 0 to 3
// CHECK-NEXT: %w = "stablehlo.all_gather"

func.func @loop(%part: tensor<8x4xf32>, %x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %w = "stablehlo.all_gather"(%part) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x4xf32>) -> tensor<8x8xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %v = %y, %u = %w) : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
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
  return %0#1 : tensor<8x8xf32>
}

// -----

// Rows are gathered as they lie, also behind a dimension of one element.

// CHECK-NOT: copy
// CHECK: remark: reads 128 bytes, writes 256, at point 0

func.func @rows(%part: tensor<1x4x8xf32>) -> tensor<1x8x8xf32> {
  %w = "stablehlo.all_gather"(%part) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<1x4x8xf32>) -> tensor<1x8x8xf32>
  return %w : tensor<1x8x8xf32>
}

// -----

// %heads lies by its second dimension: a product that sums over the first two together reads a copy, one that sums over
// the last does not, in another shape either. What is gathered to be returned comes last.

// CHECK: remark: copy of result 0 lives from 5 to 5
// CHECK-NEXT: %heads =
// CHECK: remark: copy of result 0 lives from 8 to 8
// CHECK-NEXT: %returned =
// CHECK: remark: result 0 lives from 0 to 5
// CHECK-NEXT: %heads =
// CHECK: remark: result 0 lives from 7 to 8
// CHECK-NEXT: %scaled
// CHECK: remark: result 0 lives from 7 to 8
// CHECK-NEXT: %returned =

func.func @products(%part: tensor<4x4x8xf32>, %x: tensor<4x8x16xf32>, %y: tensor<8x16xf32>) -> (tensor<8x16xf32>, tensor<4x8x8xf32>) {
  %heads = "stablehlo.all_gather"(%part) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x4x8xf32>) -> tensor<4x8x8xf32>
  %turned = stablehlo.transpose %heads, dims = [1, 0, 2] : (tensor<4x8x8xf32>) -> tensor<8x4x8xf32>
  %flat = stablehlo.reshape %turned : (tensor<8x4x8xf32>) -> tensor<32x8xf32>
  %last = stablehlo.dot_general %flat, %y, contracting_dims = [1] x [0] : (tensor<32x8xf32>, tensor<8x16xf32>) -> tensor<32x16xf32>
  %weights = stablehlo.reshape %last : (tensor<32x16xf32>) -> tensor<4x8x16xf32>
  %both = stablehlo.dot_general %heads, %weights, contracting_dims = [0, 1] x [0, 1] : (tensor<4x8x8xf32>, tensor<4x8x16xf32>) -> tensor<8x16xf32>
  %scaled = stablehlo.multiply %both, %y : tensor<8x16xf32>
  %returned = "stablehlo.all_gather"(%part) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x4x8xf32>) -> tensor<4x8x8xf32>
  return %scaled, %returned : tensor<8x16xf32>, tensor<4x8x8xf32>
}
