// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s --check-prefix=TPU

// XLA for GPU fills what several loops start from in one fusion: the place of the second loop's result is there when the first begins.

// CHECK: remark: result 1 lives from [[first:[0-9]+]] to
// CHECK-NEXT: %a:2 = stablehlo.while
// CHECK: remark: result 1 lives from [[first]] to
// CHECK-NEXT: %b:2 = stablehlo.while

// TPU: remark: result 1 lives from [[first:[0-9]+]] to
// TPU-NEXT: %a:2 = stablehlo.while
// TPU-NOT: remark: result 1 lives from [[first]] to

func.func @main(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %zeros = stablehlo.constant dense<0.0> : tensor<8x8xf32>
  %a:2 = stablehlo.while(%i = %zero, %v = %zeros) : tensor<i32>, tensor<8x8xf32>
  cond {
    %end = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %d = stablehlo.dot_general %v, %x, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    %s = stablehlo.add %d, %v : tensor<8x8xf32>
    stablehlo.return %j, %s : tensor<i32>, tensor<8x8xf32>
  }
  %y = stablehlo.dot_general %a#1, %x, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %b:2 = stablehlo.while(%i = %zero, %v = %zeros) : tensor<i32>, tensor<8x8xf32>
  cond {
    %end = stablehlo.constant dense<4> : tensor<i32>
    %p = stablehlo.compare LT, %i, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %d = stablehlo.dot_general %v, %y, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
    stablehlo.return %j, %d : tensor<i32>, tensor<8x8xf32>
  }
  return %y, %b#1 : tensor<8x8xf32>, tensor<8x8xf32>
}
