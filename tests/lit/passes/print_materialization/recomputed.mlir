// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s

// The gradient %dw comes behind what others wait for, and before what is computed again behind a
// barrier: %x2 lives no longer than for %dw.

// CHECK: remark: result 0 lives from 0 to 2
// CHECK-NEXT: %x2 = stablehlo.dot_general
// CHECK: remark: result 0 lives from 2 to 7
// CHECK-NEXT: %dw = stablehlo.dot_general
// CHECK: remark: result 0 lives from 1 to 5
// CHECK-NEXT: %dx = stablehlo.dot_general

func.func @main(%x: tensor<8x8xf32>, %dy: tensor<8x8xf32>, %w: tensor<8x8xf32>) -> (tensor<8x8xf32>, tensor<8x8xf32>) {
  %x2 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %dw = stablehlo.dot_general %x2, %dy, contracting_dims = [0] x [0] {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %sum = "stablehlo.all_reduce"(%dw) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %dx = stablehlo.dot_general %dy, %w, contracting_dims = [1] x [0] {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %again = "stablehlo.optimization_barrier"(%dx) {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  %dx2 = stablehlo.dot_general %again, %w, contracting_dims = [1] x [0] {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %dx3 = stablehlo.dot_general %dx2, %w, contracting_dims = [1] x [0] {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  %dx4 = stablehlo.dot_general %dx3, %w, contracting_dims = [1] x [0] {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : (tensor<8x8xf32>, tensor<8x8xf32>) -> tensor<8x8xf32>
  return %sum, %dx4 : tensor<8x8xf32>, tensor<8x8xf32>
}
