// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline | FileCheck %s

// Every call gets its own copy of the function, loops and reductions included;
// equal constants become one.
// CHECK-NOT: call
// CHECK: chlo.erf
// CHECK: stablehlo.while
// CHECK: stablehlo.reduce
// CHECK: chlo.erf
// CHECK-NOT: func.func private
func.func @main(%x: tensor<8xf32>) -> (tensor<f32>, tensor<f32>) {
  %0 = stablehlo.tanh %x : tensor<8xf32>
  %1 = call @norm(%x) : (tensor<8xf32>) -> tensor<f32>
  %2 = call @norm(%0) : (tensor<8xf32>) -> tensor<f32>
  return %1, %2 : tensor<f32>, tensor<f32>
}
func.func private @norm(%x: tensor<8xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %n = stablehlo.constant dense<3> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %init = stablehlo.constant dense<0.0> : tensor<f32>
  %e = chlo.erf %x : tensor<8xf32> -> tensor<8xf32>
  %0:2 = "stablehlo.while"(%zero, %e) ({
  ^bb0(%i: tensor<i32>, %a: tensor<8xf32>):
    %1 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %a: tensor<8xf32>):
    %1 = stablehlo.add %i, %one : tensor<i32>
    %2 = stablehlo.cosine %a : tensor<8xf32>
    stablehlo.return %1, %2 : tensor<i32>, tensor<8xf32>
  }) : (tensor<i32>, tensor<8xf32>) -> (tensor<i32>, tensor<8xf32>)
  %3 = stablehlo.reduce(%0#1 init: %init) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  return %3 : tensor<f32>
}
