// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s

// The second loop multiplies slices of %0#1 by what it gathers along another dimension than the first, which XLA lays out with that
// dimension first: all of %0#1 is copied into that order before the loop, and what was put together stays until it begins. Slices of
// %0#2 are read by a product, which takes any order, and are not copied.

// CHECK: remark: copy of result 1 lives from [[BEGIN:[0-9]+]] to [[END:[0-9]+]]
// CHECK-NEXT: %0:3 = stablehlo.while
// CHECK-NOT: remark: copy of result 2
// CHECK: remark: result 1 lives from {{[0-9]+}} to [[BEGIN]]
// CHECK: remark: result 2 lives from {{[0-9]+}} to [[END]]

func.func @main(%x: tensor<8x8xf32>, %part: tensor<8x4xf32>) -> tensor<8x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %empty = stablehlo.constant dense<0.0> : tensor<4x8x8xf32>
  %0:3 = stablehlo.while(%i = %zero, %s = %empty, %t = %empty) : tensor<i32>, tensor<4x8x8xf32>, tensor<4x8x8xf32>
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
    %v = stablehlo.dynamic_update_slice %t, %d, %i, %zero, %zero : (tensor<4x8x8xf32>, tensor<1x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x8x8xf32>
    stablehlo.return %j, %u, %v : tensor<i32>, tensor<4x8x8xf32>, tensor<4x8x8xf32>
  }
  %1:4 = stablehlo.while(%i = %zero, %g = %x, %s = %0#1, %t = %0#2) : tensor<i32>, tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<4x8x8xf32>
  cond {
    %end = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %a = stablehlo.dynamic_slice %s, %i, %zero, %zero, sizes = [1, 8, 8] : (tensor<4x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8xf32>
    %b = stablehlo.reshape %a : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
    %c = stablehlo.dynamic_slice %t, %i, %zero, %zero, sizes = [1, 8, 8] : (tensor<4x8x8xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x8xf32>
    %d = stablehlo.reshape %c : (tensor<1x8x8xf32>) -> tensor<8x8xf32>
    %e = stablehlo.dot_general %g, %d, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %f = stablehlo.slice %e [0:8, 0:4] : (tensor<8x8xf32>) -> tensor<8x4xf32>
    %h = "stablehlo.all_gather"(%f) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x4xf32>) -> tensor<8x8xf32>
    %k = stablehlo.multiply %h, %b : tensor<8x8xf32>
    stablehlo.return %j, %k, %s, %t : tensor<i32>, tensor<8x8xf32>, tensor<4x8x8xf32>, tensor<4x8x8xf32>
  }
  return %1#1 : tensor<8x8xf32>
}
