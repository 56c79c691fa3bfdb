// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -split-input-file -o /dev/null 2>&1 | FileCheck %s

// The kernel of a product adds a bias to it: their sum lies in the product's place, and what is computed from it value by value, such
// as its positive part, is computed in the products that read it. What joins two values of its size, such as a SiLU, is stored.

// CHECK: remark: result 0 lives from 1 to 3
// CHECK-NEXT: %dot = stablehlo.dot_general
// CHECK: remark: result 0 lives from 4 to 8
// CHECK-NEXT: %sum = stablehlo.add
// CHECK-NOT: %relu = stablehlo.maximum
// CHECK: remark: result 0 lives from 9 to 9
// CHECK-NEXT: %silu = stablehlo.multiply
// CHECK: remark: reads 3072 bytes, writes 512
// CHECK-NEXT: %dot = stablehlo.dot_general
// CHECK: remark: reads 64 bytes, writes 0
// CHECK-NEXT: %sum = stablehlo.add

func.func @main(%x: tensor<8x32xf32>, %w: tensor<32x16xf32>, %b: tensor<16xf32>, %v: tensor<16x16xf32>) -> (tensor<8x16xf32>, tensor<16x16xf32>, tensor<8x16xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<8x16xf32>
  %dot = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  %bias = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<16xf32>) -> tensor<8x16xf32>
  %sum = stablehlo.add %dot, %bias : tensor<8x16xf32>
  %relu = stablehlo.maximum %sum, %zero : tensor<8x16xf32>
  %y = stablehlo.dot_general %relu, %v, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  %dv = stablehlo.dot_general %relu, %y, contracting_dims = [0] x [0] : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
  %gate = stablehlo.logistic %sum : tensor<8x16xf32>
  %silu = stablehlo.multiply %sum, %gate : tensor<8x16xf32>
  %z = stablehlo.dot_general %silu, %v, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
  return %y, %dv, %z : tensor<8x16xf32>, tensor<16x16xf32>, tensor<8x16xf32>
}

// -----

// What is read in slices is computed of them: the product stays for both.

// CHECK: remark: result 0 lives from 0 to 4
// CHECK-NEXT: %dot = stablehlo.dot_general
// CHECK-NOT: %sum = stablehlo.add
// CHECK: remark: result 0 lives
// CHECK-NEXT: %half = stablehlo.slice

func.func @main(%x: tensor<8x32xf32>, %w: tensor<32x16xf32>, %b: tensor<16xf32>) -> (tensor<8x8xf32>, tensor<8x16xf32>) {
  %dot = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x32xf32>, tensor<32x16xf32>) -> tensor<8x16xf32>
  %bias = stablehlo.broadcast_in_dim %b, dims = [1] : (tensor<16xf32>) -> tensor<8x16xf32>
  %sum = stablehlo.add %dot, %bias : tensor<8x16xf32>
  %half = stablehlo.slice %sum [0:8, 0:8] : (tensor<8x16xf32>) -> tensor<8x8xf32>
  %exp = stablehlo.exponential %sum : tensor<8x16xf32>
  return %half, %exp : tensor<8x8xf32>, tensor<8x16xf32>
}
