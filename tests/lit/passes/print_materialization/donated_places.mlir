// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=donated=0,1,2 -o /dev/null 2>&1 | FileCheck %s

// Three donated parameters are updated by halves, which are gathered behind the updates and copied into the arguments' memory, one
// after the other, beside the last gather. Until its copy is written the memory of an argument is kept. What is gathered lies there,
// if it ends before: the first of the three in the last argument, the second one nowhere, as XLA does not move what it has placed.

// CHECK: remark: copy of result 0 lives from 9 to 9
// CHECK-NEXT: %w0 = "stablehlo.all_gather"
// CHECK: remark: copy of result 0 lives from 9 to 9
// CHECK-NEXT: %w1 = "stablehlo.all_gather"
// CHECK: remark: copy of result 0 lives from 9 to 9
// CHECK-NEXT: %w2 = "stablehlo.all_gather"
// CHECK: remark: argument 2 lives from 0 to 5
// CHECK: remark: result 0 lives from 6 to 8
// CHECK-NEXT: %w0 = "stablehlo.all_gather"
// CHECK: remark: result 0 lives from 3 to 8
// CHECK-NEXT: %s1 = stablehlo.add
// CHECK: remark: result 0 lives from 7 to 9
// CHECK-NEXT: %w1 = "stablehlo.all_gather"

// The halves are sent from arguments 0 and 1; nothing lies there before.

// CHECK: remark: place of argument 1 lives from 4 to 4
// CHECK: remark: place of argument 1 lives from 5 to 8, 50 % of its bytes
// CHECK: remark: place of argument 0 lives from 2 to 2
// CHECK: remark: place of argument 0 lives from 3 to 8, 50 % of its bytes
// CHECK-NOT: remark: place of argument 2

func.func @main(%p0: tensor<8x8xf32>, %p1: tensor<8x8xf32>, %p2: tensor<8x8xf32>, %g: tensor<8x4xf32>)
    -> (tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>) {
  %h0 = stablehlo.slice %p0 [0:8, 0:4] : (tensor<8x8xf32>) -> tensor<8x4xf32>
  %s0 = stablehlo.add %h0, %g : tensor<8x4xf32>
  %w0 = "stablehlo.all_gather"(%s0) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x4xf32>) -> tensor<8x8xf32>
  %h1 = stablehlo.slice %p1 [0:8, 0:4] : (tensor<8x8xf32>) -> tensor<8x4xf32>
  %s1 = stablehlo.add %h1, %g : tensor<8x4xf32>
  %w1 = "stablehlo.all_gather"(%s1) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x4xf32>) -> tensor<8x8xf32>
  %h2 = stablehlo.slice %p2 [0:8, 0:4] : (tensor<8x8xf32>) -> tensor<8x4xf32>
  %s2 = stablehlo.add %h2, %g : tensor<8x4xf32>
  %w2 = "stablehlo.all_gather"(%s2) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x4xf32>) -> tensor<8x8xf32>
  return %w0, %w1, %w2 : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
}
