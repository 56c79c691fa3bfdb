// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-compare-maxima -verify-diagnostics | FileCheck %s

// A norm is computed again from what stays for its own gradient.

// CHECK-LABEL: func.func @main
// CHECK: %[[X:.*]] = stablehlo.multiply
// CHECK: stablehlo.compare GT, %[[X]],
func.func @main(%x: tensor<4x4xf32>, %scale: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xi1>) {
  %zero = stablehlo.constant dense<0.0> : tensor<8x4xf32>
  %all = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x4xf32>) -> tensor<8x4xf32>
  %0 = stablehlo.multiply %all, %scale : tensor<8x4xf32>
  %y = stablehlo.maximum %0, %zero : tensor<8x4xf32>
  %mask = stablehlo.compare GT, %0, %zero : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
  return %y, %mask : tensor<8x4xf32>, tensor<8x4xi1>
}

// -----

// Zero is not below zero, but its positive part is no less: another comparison stays as it is.
// CHECK-LABEL: func.func @main
// CHECK: %[[X:.*]] = stablehlo.dot_general
// CHECK: stablehlo.compare GE, %[[X]],
func.func @main(%x: tensor<8x4xf32>, %w: tensor<2x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xi1>) {
  %zero = stablehlo.constant dense<0.0> : tensor<8x4xf32>
  %all = "stablehlo.all_gather"(%w) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x4xf32>) -> tensor<4x4xf32>
  %0 = stablehlo.dot_general %x, %all, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %y = stablehlo.maximum %0, %zero : tensor<8x4xf32>
  %mask = stablehlo.compare GE, %0, %zero : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
  return %y, %mask : tensor<8x4xf32>, tensor<8x4xi1>
}

// -----

// What something else reads stays anyway.
// CHECK-LABEL: func.func @main
// CHECK: %[[X:.*]] = stablehlo.dot_general
// CHECK: stablehlo.compare GT, %[[X]],
func.func @main(%x: tensor<8x4xf32>, %w: tensor<2x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xi1>, tensor<8x4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<8x4xf32>
  %all = "stablehlo.all_gather"(%w) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x4xf32>) -> tensor<4x4xf32>
  %0 = stablehlo.dot_general %x, %all, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %y = stablehlo.maximum %0, %zero : tensor<8x4xf32>
  %mask = stablehlo.compare GT, %0, %zero : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
  return %y, %mask, %0 : tensor<8x4xf32>, tensor<8x4xi1>, tensor<8x4xf32>
}

// -----

// What is computed again in the backward phase does not stay for it.
// CHECK-LABEL: func.func @main
// CHECK: %[[X:.*]] = stablehlo.dot_general
// CHECK: stablehlo.compare GT, %[[X]],
func.func @main(%x: tensor<8x4xf32>, %w: tensor<2x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xi1>) {
  %zero = stablehlo.constant dense<0.0> : tensor<8x4xf32>
  %all = "stablehlo.all_gather"(%w) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x4xf32>) -> tensor<4x4xf32>
  %0 = stablehlo.dot_general %x, %all, contracting_dims = [1] x [0] {alpa.phase = 1 : i64} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %y = stablehlo.maximum %0, %zero {alpa.phase = 1 : i64} : tensor<8x4xf32>
  %mask = stablehlo.compare GT, %0, %zero {alpa.phase = 1 : i64} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
  return %y, %mask : tensor<8x4xf32>, tensor<8x4xi1>
}

// -----

// A program of one device is as it was measured.
// CHECK-LABEL: func.func @main
// CHECK: %[[X:.*]] = stablehlo.dot_general
// CHECK: stablehlo.compare GT, %[[X]],
func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xi1>) {
  %zero = stablehlo.constant dense<0.0> : tensor<8x4xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %y = stablehlo.maximum %0, %zero : tensor<8x4xf32>
  %mask = stablehlo.compare GT, %0, %zero : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
  return %y, %mask : tensor<8x4xf32>, tensor<8x4xi1>
}
