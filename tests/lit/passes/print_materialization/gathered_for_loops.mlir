// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s

// Two loops take a copy of what is gathered. XLA may take iterations out of the second one, which read what was gathered as it
// lies: it stays until that loop begins.

// CHECK: remark: copy of result 0 lives from 2 to 17
// CHECK-NEXT: %w = "stablehlo.all_gather"
// CHECK: remark: copy of argument 0 lives
// CHECK: remark: result 0 lives from 0 to 10
// CHECK-NEXT: %w = "stablehlo.all_gather"

func.func @main(%part: tensor<8x4xf32>, %x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %w = "stablehlo.all_gather"(%part) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x4xf32>) -> tensor<8x8xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %v = %x, %u = %w) : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
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
  %1:3 = stablehlo.while(%i = %zero, %v = %0#1, %u = %w) : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
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
  return %1#1 : tensor<8x8xf32>
}
