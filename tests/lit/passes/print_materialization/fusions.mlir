// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=donated=0 -o /dev/null 2>&1 | FileCheck %s --check-prefix=DONATED

// Elementwise chains are computed in what reads them: %tanh in the product, %bias in %sum. Two
// fusions read %sum, which is made of two values of its size, so it is stored. What makes it reduces it as well, and writes
// neither over %dot.

// CHECK: remark: result 0 lives from 2 to 5
// CHECK-NEXT: %dot = stablehlo.dot_general
// CHECK: remark: result 0 lives from 5 to 7
// CHECK-NEXT: %sum = stablehlo.add
// CHECK: remark: result 0 lives from 6 to 8
// CHECK-NEXT: %norm = "stablehlo.reduce"
// CHECK: remark: result 0 lives from 8 to 8
// CHECK-NEXT: %out = stablehlo.exponential
// CHECK: remark: reads 1536 bytes, writes 512, at point 2
// CHECK-NEXT: %dot = stablehlo.dot_general
// CHECK: remark: reads 1088 bytes, writes 512, at point 5
// CHECK-NEXT: %sum = stablehlo.add
// What computes %sum reduces it and takes its exponential as well.
// CHECK: remark: reads 0 bytes, writes 32, at point 6
// CHECK: remark: reads 0 bytes, writes 512, at point 7
// CHECK-NOT: remark:

// DONATED: remark: argument 0 lives from 0 to 5
// DONATED: remark: argument 1 lives from 0 to 8

func.func @main(%x: tensor<8x16xf32>, %w: tensor<16x16xf32>, %b: tensor<16xf32>) -> (tensor<8x16xf32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %tanh = stablehlo.tanh %x : tensor<8x16xf32>
  %dot = stablehlo.dot_general %tanh, %w, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %bias = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<16xf32>) -> tensor<8x16xf32>
  %shifted = stablehlo.add %dot, %bias : tensor<8x16xf32>
  %sum = stablehlo.add %shifted, %x : tensor<8x16xf32>
  %norm = "stablehlo.reduce"(%sum, %zero) <{dimensions = array<i64: 1>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<8x16xf32>, tensor<f32>) -> tensor<8xf32>
  %out = stablehlo.exponential %sum : tensor<8x16xf32>
  return %out, %norm : tensor<8x16xf32>, tensor<8xf32>
}
