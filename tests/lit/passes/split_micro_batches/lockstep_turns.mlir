// RUN: stablehlo-alpa-opt %s --alpa-split-micro-batches=micro-batches=2 | FileCheck %s

// Rows stay as they are where a mask beside them is false, which is the
// predicate of what they have become. The most turns that a row has taken are
// those of each that goes on: a micro-batch asks its own.

// CHECK-LABEL: func.func @main
// CHECK: alpa.manual
// CHECK: stablehlo.reduce({{.*}} applies stablehlo.or
// CHECK: stablehlo.return
// CHECK: alpa.manual
// CHECK: %[[LEAST:.+]] = stablehlo.constant dense<-2147483648>
// CHECK: stablehlo.reduce({{.*}} init: %[[LEAST]]) applies stablehlo.maximum
// CHECK: stablehlo.select {{.*}}alpa.results = [#alpa.sharding<S0>]
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %three = stablehlo.constant dense<3.0> : tensor<8xf32>
  %zeros = stablehlo.constant dense<0> : tensor<8xi32>
  %ones = stablehlo.constant dense<1> : tensor<8xi32>
  %false = stablehlo.constant dense<false> : tensor<i1>
  %least = stablehlo.constant dense<-2147483648> : tensor<i32>
  %small = stablehlo.compare LT, %x, %three : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
  %0:4 = stablehlo.while(%i = %x, %mask = %small, %count = %zeros, %bound = %three)
      : tensor<8xf32>, tensor<8xi1>, tensor<8xi32>, tensor<8xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %bound : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %2 = stablehlo.reduce(%1 init: %false) applies stablehlo.or across dimensions = [0] : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %next = stablehlo.add %count, %ones : tensor<8xi32>
    %turn = stablehlo.reduce(%next init: %least) applies stablehlo.maximum across dimensions = [0] : (tensor<8xi32>, tensor<i32>) -> tensor<i32>
    %number = stablehlo.convert %turn : (tensor<i32>) -> tensor<f32>
    %step = stablehlo.broadcast_in_dim %number, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %1 = stablehlo.add %i, %step : tensor<8xf32>
    %2 = stablehlo.compare LT, %1, %three : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %3 = stablehlo.and %mask, %2 : tensor<8xi1>
    %4 = stablehlo.select %mask, %1, %i : tensor<8xi1>, tensor<8xf32>
    %5 = stablehlo.select %mask, %next, %count : tensor<8xi1>, tensor<8xi32>
    stablehlo.return %4, %3, %5, %bound : tensor<8xf32>, tensor<8xi1>, tensor<8xi32>, tensor<8xf32>
  }
  return %0#0 : tensor<8xf32>
}
