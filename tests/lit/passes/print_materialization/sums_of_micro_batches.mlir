// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -split-input-file -o /dev/null 2>&1 | FileCheck %s

// A gradient ends where it is added to the sum over the micro-batches, which is there through the
// whole step and is counted apart from what a micro-batch has: it is read and written with the
// gradient. Of one micro-batch alone the gradient is the sum.

// CHECK: remark: result 0 lives from 0 to 1
// CHECK-NEXT: %g = stablehlo.dot_general
// CHECK-NOT: lives
// CHECK: remark: reads 512 bytes, writes 256, at point 1
// CHECK-NEXT: %sum = "alpa.accumulate"
// CHECK: remark: result 0 lives from 0 to 1
// CHECK-NEXT: %h = stablehlo.dot_general

func.func @several(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {alpa.micro_batches = 4 : i64} {
  %g = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %sum = "alpa.accumulate"(%g) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %sum : tensor<8x8xf32>
}

// -----

func.func @one(%x: tensor<8x8xf32>) -> tensor<8x8xf32> attributes {alpa.micro_batches = 1 : i64} {
  %h = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %last = "alpa.accumulate"(%h) : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %last : tensor<8x8xf32>
}
