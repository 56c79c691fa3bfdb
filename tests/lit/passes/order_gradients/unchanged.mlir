// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-order-gradients -verify-diagnostics | FileCheck %s

// Without collectives nothing is put off.

// CHECK-NOT: optimization_barrier
func.func @main(%h: tensor<8x4xf32>, %dy: tensor<8x4xf32>, %w: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<8x4xf32>) {
  %dw = stablehlo.dot_general %h, %dy, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %dx = stablehlo.dot_general %dy, %w, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %dx1 = stablehlo.dot_general %dx, %w, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %dw, %dx1 : tensor<4x4xf32>, tensor<8x4xf32>
}

// -----

// A kernel that reads arguments, and a function that it computes itself, has nothing that could wait: the function would be written
// to memory for that.
func.func @main(%h: tensor<8x4xf32>, %dy: tensor<8x4xf32>, %w: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<8x8xf32>) {
  %all = "stablehlo.all_gather"(%w) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x4xf32>) -> tensor<4x8xf32>
  %dw = stablehlo.dot_general %h, %dy, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %0 = stablehlo.negate %dy : tensor<8x4xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.dot_general %1, %all, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %dw, %2 : tensor<4x4xf32>, tensor<8x8xf32>
}

// -----

// What is shown in order is no gradient, and a token is nothing that lies in memory.
func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>, %first: !stablehlo.token) -> (tensor<8x8xf32>, !stablehlo.token) {
  %all = "stablehlo.all_gather"(%w) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x4xf32>) -> tensor<4x8xf32>
  %shown = stablehlo.custom_call @show(%first, %x) {has_side_effect = true} : (!stablehlo.token, tensor<8x4xf32>) -> !stablehlo.token
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.dot_general %1, %all, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %2, %shown : tensor<8x8xf32>, !stablehlo.token
}
