// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-merge-operators | FileCheck %s

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

// -----

// The limit of an unsigned counter may have its first bit set, here two turns
// behind the start: -2147483647 where it is read as a signed one.
// CHECK: alpa.trip_count = 2 : i64
func.func @main(%x: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %start = stablehlo.constant dense<2147483647> : tensor<ui32>
  %one = stablehlo.constant dense<1> : tensor<ui32>
  %limit = stablehlo.constant dense<2147483649> : tensor<ui32>
  %0:2 = "stablehlo.while"(%start, %x) ({
  ^bb0(%i: tensor<ui32>, %a: tensor<16x32xf32>):
    %p = stablehlo.compare LT, %i, %limit : (tensor<ui32>, tensor<ui32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<ui32>, %a: tensor<16x32xf32>):
    %n = stablehlo.add %i, %one : tensor<ui32>
    %t = stablehlo.tanh %a : tensor<16x32xf32>
    stablehlo.return %n, %t : tensor<ui32>, tensor<16x32xf32>
  }) : (tensor<ui32>, tensor<16x32xf32>) -> (tensor<ui32>, tensor<16x32xf32>)
  return %0#1 : tensor<16x32xf32>
}

// -----

// Turns up to the largest of eight bits are counted without overflow.
// CHECK: alpa.trip_count = 256 : i64
func.func @main(%x: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %start = stablehlo.constant dense<-128> : tensor<i8>
  %one = stablehlo.constant dense<1> : tensor<i8>
  %limit = stablehlo.constant dense<127> : tensor<i8>
  %0:2 = "stablehlo.while"(%start, %x) ({
  ^bb0(%i: tensor<i8>, %a: tensor<16x32xf32>):
    %p = stablehlo.compare LE, %i, %limit : (tensor<i8>, tensor<i8>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%i: tensor<i8>, %a: tensor<16x32xf32>):
    %n = stablehlo.add %i, %one : tensor<i8>
    %t = stablehlo.tanh %a : tensor<16x32xf32>
    stablehlo.return %n, %t : tensor<i8>, tensor<16x32xf32>
  }) : (tensor<i8>, tensor<16x32xf32>) -> (tensor<i8>, tensor<16x32xf32>)
  return %0#1 : tensor<16x32xf32>
}
