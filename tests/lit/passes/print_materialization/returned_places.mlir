// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -split-input-file -o /dev/null 2>&1 | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=TPU

// What is returned has memory of its own from the beginning. %b lies in it, the larger %a beside it, and what %d is made of cannot.

// CHECK: remark: result 0 lives from 0 to 1
// CHECK-NEXT: %a = stablehlo.dot_general
// CHECK: remark: result 0 lives from 3 to 4
// CHECK-NEXT: %d = stablehlo.dot_general
// CHECK: remark: place of result 0 lives from 0 to 0
// CHECK-NEXT: %d = stablehlo.dot_general
// CHECK-NOT: remark: place
// Of XLA for TPU as well: half of it is taken by %a, which is stored in 16 bits.
// TPU: remark: place of result 0 lives from 0 to 1, 800 %
// TPU-NEXT: %d = stablehlo.dot_general
// TPU: remark: place of result 0 lives from 2 to 2, 1600 %
// TPU-NEXT: %d = stablehlo.dot_general

func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x16xf32>, %v: tensor<16x8xf32>) -> tensor<8x8xf32> {
  %a = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x16xf32>) -> tensor<8x16xf32>
  %b = stablehlo.dot_general %a, %v, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x8xf32>) -> tensor<8x8xf32>
  %c = stablehlo.dot_general %b, %x, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %d = stablehlo.dot_general %c, %x, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %d : tensor<8x8xf32>
}

// -----

// What is returned twice is copied, and lies beside its copy.

// CHECK: remark: result 0 lives from 0 to 1
// CHECK-NEXT: %a = stablehlo.dot_general
// CHECK: remark: copy of result 0 lives from 1 to 1
// CHECK-NEXT: %a = stablehlo.dot_general
// CHECK: remark: place of result 0 lives from 0 to 0
// CHECK-NEXT: %a = stablehlo.dot_general

func.func @main(%x: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %a = stablehlo.dot_general %x, %x, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %a, %a : tensor<8x8xf32>, tensor<8x8xf32>
}

// -----

// What is returned lies in rows: it is not written over what was scattered along columns, which lies in columns.

// CHECK: remark: result 0 lives from 0 to 1
// CHECK-NEXT: %s = "stablehlo.reduce_scatter"
// CHECK: remark: result 0 lives from 1 to 2
// CHECK-NEXT: %t = stablehlo.tanh

func.func @main(%x: tensor<8x16xf32>) -> tensor<8x8xf32> {
  %s = "stablehlo.reduce_scatter"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 1 : i64}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<8x16xf32>) -> tensor<8x8xf32>
  %t = stablehlo.tanh %s : tensor<8x8xf32>
  return %t : tensor<8x8xf32>
}
