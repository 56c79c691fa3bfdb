// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s

// What a loop carries has a place of its own while the body runs, which the body's result is
// written to; what the body makes lies beside it. What is handed on as it is takes no place.

// CHECK: remark: result 0 lives from 6 to 7
// CHECK-NEXT: %d = stablehlo.dot_general
// CHECK: remark: result 0 lives from 8 to 8
// CHECK-NEXT: %s = stablehlo.add
// CHECK: remark: result 0 lives from 1 to 9
// CHECK-NEXT: stablehlo.while
// CHECK: remark: result 1 lives from 1 to 10
// CHECK-NEXT: stablehlo.while
// CHECK-NOT: remark: result 2

func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> tensor<8x8xf32> {
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
    %s = stablehlo.add %d, %v : tensor<8x8xf32>
    stablehlo.return %j, %s, %u : tensor<i32>, tensor<8x8xf32>, tensor<8x8xf32>
  }
  return %0#1 : tensor<8x8xf32>
}
