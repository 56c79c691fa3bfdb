// RUN: stablehlo-alpa-opt %s -alpa-merge-operators | FileCheck %s

// CHECK: stablehlo.while
// CHECK: alpa.trip_count = 5 : i64
func.func @main(%x: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  %0:2 = "stablehlo.while"(%zero, %x) ({
  ^bb0(%i: tensor<i32>, %a: tensor<16x32xf32>):
    %p = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %a: tensor<16x32xf32>):
    %n = stablehlo.add %i, %one : tensor<i32>
    %t = stablehlo.tanh %a : tensor<16x32xf32>
    stablehlo.return %n, %t : tensor<i32>, tensor<16x32xf32>
  }) : (tensor<i32>, tensor<16x32xf32>) -> (tensor<i32>, tensor<16x32xf32>)
  return %0#1 : tensor<16x32xf32>
}
