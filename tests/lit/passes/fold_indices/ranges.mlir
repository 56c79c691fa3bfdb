// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-fold-indices | FileCheck %s

// No position of a sort counts from the end.

// CHECK-LABEL: func.func @main
// CHECK: %[[SORTED:.+]]:2 = "stablehlo.sort"
// CHECK-NOT: stablehlo.select
// CHECK: return %[[SORTED]]#1
func.func @main(%keys: tensor<6xi32>) -> tensor<6xi32> {
  %zeros = stablehlo.constant dense<0> : tensor<6xi32>
  %sizes = stablehlo.constant dense<6> : tensor<6xi32>
  %positions = stablehlo.iota dim = 0 : tensor<6xi32>
  %0:2 = "stablehlo.sort"(%keys, %positions) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
    %less = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<6xi32>, tensor<6xi32>) -> (tensor<6xi32>, tensor<6xi32>)
  %1 = stablehlo.compare LT, %0#1, %zeros : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
  %2 = stablehlo.add %0#1, %sizes : tensor<6xi32>
  %3 = stablehlo.select %1, %2, %0#1 : tensor<6xi1>, tensor<6xi32>
  return %3 : tensor<6xi32>
}

// -----

// The keys may.

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.select
func.func @main(%keys: tensor<6xi32>) -> tensor<6xi32> {
  %zeros = stablehlo.constant dense<0> : tensor<6xi32>
  %sizes = stablehlo.constant dense<6> : tensor<6xi32>
  %1 = stablehlo.compare LT, %keys, %zeros : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
  %2 = stablehlo.add %keys, %sizes : tensor<6xi32>
  %3 = stablehlo.select %1, %2, %keys : tensor<6xi1>, tensor<6xi32>
  return %3 : tensor<6xi32>
}

// -----

// Sums that wrap around are not above what is added up: 100 + 100 is -56.

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.select
func.func @main(%x: tensor<101xf32>, %y: tensor<101xf32>) -> tensor<101xf32> {
  %positions = stablehlo.iota dim = 0 : tensor<101xi8>
  %zeros = stablehlo.constant dense<0> : tensor<101xi8>
  %0 = stablehlo.add %positions, %positions : tensor<101xi8>
  %1 = stablehlo.compare GE, %0, %zeros : (tensor<101xi8>, tensor<101xi8>) -> tensor<101xi1>
  %2 = stablehlo.select %1, %x, %y : tensor<101xi1>, tensor<101xf32>
  return %2 : tensor<101xf32>
}

// -----

// Numbers of 64 bits without a sign may be above all of those that have one.

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.select
func.func @main(%keys: tensor<4xui64>, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %most = stablehlo.constant dense<9223372036854775807> : tensor<4xui64>
  %0 = stablehlo.compare LE, %keys, %most : (tensor<4xui64>, tensor<4xui64>) -> tensor<4xi1>
  %1 = stablehlo.select %0, %x, %y : tensor<4xi1>, tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// NaN is not equal to itself.

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.select
func.func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.compare EQ, %x, %x : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %1 = stablehlo.select %0, %x, %y : tensor<4xi1>, tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// Positions of the largest, made shorter and held within bounds.

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.select
// CHECK: return %arg2
func.func @main(%x: tensor<6x4xf32>, %a: tensor<6xf32>, %b: tensor<6xf32>) -> tensor<6xf32> {
  %positions = stablehlo.iota dim = 1 : tensor<6x4xi64>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0> : tensor<i64>
  %0:2 = stablehlo.reduce(%x init: %low), (%positions init: %zero) across dimensions = [1] : (tensor<6x4xf32>, tensor<6x4xi64>, tensor<f32>, tensor<i64>) -> (tensor<6xf32>, tensor<6xi64>)
   reducer(%l: tensor<f32>, %r: tensor<f32>) (%i: tensor<i64>, %j: tensor<i64>) {
    %more = stablehlo.compare GT, %l, %r : (tensor<f32>, tensor<f32>) -> tensor<i1>
    %most = stablehlo.select %more, %l, %r : tensor<i1>, tensor<f32>
    %at = stablehlo.select %more, %i, %j : tensor<i1>, tensor<i64>
    stablehlo.return %most, %at : tensor<f32>, tensor<i64>
  }
  %1 = stablehlo.convert %0#1 : (tensor<6xi64>) -> tensor<6xi8>
  %four = stablehlo.constant dense<4> : tensor<6xi8>
  %2 = stablehlo.compare GE, %1, %four : (tensor<6xi8>, tensor<6xi8>) -> tensor<6xi1>
  %3 = stablehlo.select %2, %a, %b : tensor<6xi1>, tensor<6xf32>
  return %3 : tensor<6xf32>
}
