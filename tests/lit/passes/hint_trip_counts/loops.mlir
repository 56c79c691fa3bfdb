// RUN: stablehlo-alpa-opt %s -alpa-hint-trip-counts=count=50 | FileCheck %s
// RUN: stablehlo-alpa-opt %s -alpa-hint-trip-counts=count=50 -alpa-merge-operators -verify-diagnostics -o /dev/null

// A loop that ends when values are small, one that counts to five, one that was marked by hand.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<16x32xf32>, %small: tensor<f32>, %choice: tensor<i1>) -> tensor<16x32xf32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %five = stablehlo.constant dense<5> : tensor<i32>
  // CHECK: stablehlo.while
  // CHECK: attributes {alpa.trip_count = 50 : i64}
  // expected-remark @below {{trip count of this loop is not known; its costs are counted 50 times, as the hint says}}
  %0:2 = "stablehlo.while"(%small, %x) ({
  ^bb0(%s: tensor<f32>, %a: tensor<16x32xf32>):
    %p = stablehlo.compare LT, %s, %small : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%s: tensor<f32>, %a: tensor<16x32xf32>):
    %n = stablehlo.add %s, %s : tensor<f32>
    %t = stablehlo.tanh %a : tensor<16x32xf32>
    stablehlo.return %n, %t : tensor<f32>, tensor<16x32xf32>
  }) : (tensor<f32>, tensor<16x32xf32>) -> (tensor<f32>, tensor<16x32xf32>)
  // CHECK: stablehlo.while
  // CHECK-NOT: alpa.trip_count
  // CHECK: stablehlo.while
  %1:2 = "stablehlo.while"(%zero, %0#1) ({
  ^bb0(%i: tensor<i32>, %a: tensor<16x32xf32>):
    %p = stablehlo.compare LT, %i, %five : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i32>, %a: tensor<16x32xf32>):
    %n = stablehlo.add %i, %one : tensor<i32>
    %t = stablehlo.tanh %a : tensor<16x32xf32>
    stablehlo.return %n, %t : tensor<i32>, tensor<16x32xf32>
  }) : (tensor<i32>, tensor<16x32xf32>) -> (tensor<i32>, tensor<16x32xf32>)
  // CHECK: alpa.trip_count = 3 : i64
  // expected-remark @below {{its costs are counted 3 times}}
  %2:2 = "stablehlo.while"(%small, %1#1) ({
  ^bb0(%s: tensor<f32>, %a: tensor<16x32xf32>):
    %p = stablehlo.compare LT, %s, %small : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%s: tensor<f32>, %a: tensor<16x32xf32>):
    %n = stablehlo.add %s, %s : tensor<f32>
    stablehlo.return %n, %a : tensor<f32>, tensor<16x32xf32>
  }) {alpa.trip_count = 3 : i64} : (tensor<f32>, tensor<16x32xf32>) -> (tensor<f32>, tensor<16x32xf32>)
  // A branch is no loop.
  // CHECK: stablehlo.if
  // CHECK-NOT: alpa.trip_count
  %3 = "stablehlo.if"(%choice) ({
    stablehlo.return %2#1 : tensor<16x32xf32>
  }, {
    stablehlo.return %x : tensor<16x32xf32>
  }) : (tensor<i1>) -> tensor<16x32xf32>
  return %3 : tensor<16x32xf32>
}
