// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s

// What %stack holds is exchanged for the second loop. XLA's latency-hiding scheduler has it run beside the products before that
// loop, which take that time: what is sent (a copy, in the order of the dimension that is split) and what comes lie there while
// the products run.

// CHECK: remark: copy of result 1 lives from [[#SENT:]] to {{[0-9]+$}}
// CHECK-NEXT: %stack:2 = stablehlo.while
// CHECK: remark: result 0 lives from [[#SENT]] to {{[0-9]+$}}
// CHECK-NEXT: %moved = "stablehlo.all_to_all"
// CHECK: at point [[#SENT+1]]
// CHECK-NEXT: %p1 = stablehlo.dot_general
// CHECK: at point [[#SENT]]
// CHECK-NEXT: %moved = "stablehlo.all_to_all"

func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %empty = stablehlo.constant dense<0.0> : tensor<4x8x8xf32>
  %stack:2 = stablehlo.while(%i = %zero, %s = %empty) : tensor<i32>, tensor<4x8x8xf32>
  cond {
    %end = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %m = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %d = stablehlo.reshape %m : (tensor<8x8xf32>) -> tensor<1x8x8xf32>
    %u = stablehlo.dynamic_update_slice %s, %d, %i, %zero, %zero : (tensor<4x8x8xf32>, tensor<1x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x8x8xf32>
    stablehlo.return %j, %u : tensor<i32>, tensor<4x8x8xf32>
  }
  %p1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %p2 = stablehlo.dot_general %p1, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %moved = "stablehlo.all_to_all"(%stack#1) <{split_dimension = 2 : i64, concat_dimension = 1 : i64, split_count = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x8x8xf32>) -> tensor<4x16x4xf32>
  %back:3 = stablehlo.while(%i = %zero, %g = %p2, %s = %moved) : tensor<i32>, tensor<8x8xf32>, tensor<4x16x4xf32>
  cond {
    %end = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %a = stablehlo.dynamic_slice %s, %i, %zero, %zero, sizes = [1, 16, 4] : (tensor<4x16x4xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x16x4xf32>
    %b = stablehlo.reshape %a : (tensor<1x16x4xf32>) -> tensor<8x8xf32>
    %k = stablehlo.dot_general %g, %b, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    stablehlo.return %j, %k, %s : tensor<i32>, tensor<8x8xf32>, tensor<4x16x4xf32>
  }
  return %back#1 : tensor<8x8xf32>
}
