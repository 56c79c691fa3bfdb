// RUN: stablehlo-alpa-opt %s --alpa-loop-second-pass="batch=1 micro-batches=4" | FileCheck %s

// Each turn trains the weights that the one before has made: it has a loop over 4 parts of the batch, which
// adds up gradients, and the loop that it is a turn of is not cut again.

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while
// CHECK-SAME: attributes {alpa.once}
// CHECK: stablehlo.reshape {{.*}} {alpa.once} : (tensor<8x4xf32>) -> tensor<4x2x4xf32>
// CHECK: %[[SUMS:.+]]:4 = stablehlo.while
// CHECK-SAME: attributes {alpa.once}
// CHECK: stablehlo.dynamic_slice {{.*}}, sizes = [1, 2, 4]
// CHECK: stablehlo.dot_general {{.*}}, contracting_dims = [1] x [0] : (tensor<2x4xf32>, tensor<4x4xf32>) -> tensor<2x4xf32>
// CHECK: stablehlo.dot_general {{.*}}, contracting_dims = [0] x [0] : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
// CHECK: stablehlo.return
// CHECK: stablehlo.subtract {{.*}}, %[[SUMS]]
// CHECK-NOT: stablehlo.dot_general
func.func @main(%w: tensor<4x4xf32>, %x: tensor<8x4xf32>) -> tensor<4x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0:3 = stablehlo.while(%i = %zero, %a = %w, %b = %x) : tensor<i32>, tensor<4x4xf32>, tensor<8x4xf32>
  cond {
    %three = stablehlo.constant dense<3> : tensor<i32>
    %1 = stablehlo.compare LT, %i, %three, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.dot_general %b, %a, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> loc("step/while/body/jvp()/dot")
    %3 = stablehlo.dot_general %b, %2, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32> loc("step/while/body/transpose(jvp())/dot")
    %4 = stablehlo.subtract %a, %3 : tensor<4x4xf32> loc("step/while/body/sub")
    stablehlo.return %1, %4, %b : tensor<i32>, tensor<4x4xf32>, tensor<8x4xf32>
  }
  return %0#1 : tensor<4x4xf32>
}
