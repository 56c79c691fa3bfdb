// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-order-gradients=of-head=true | FileCheck %s

// The gradient of the head, a convolution, is waited for; that of its bias, and that of the layer before it, are not.

// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<1x8x8x4xf32>, %h: tensor<1x8x8x4xf32>, %dy: tensor<1x8x8x2xf32>, %k: tensor<1x1x4x2xf32>, %k1: tensor<1x1x4x4xf32>, %w: tensor<1x8x4x4xf32>) -> (tensor<2xf32>, tensor<1x1x4x2xf32>, tensor<1x1x4x4xf32>, tensor<1x8x8x4xf32>, tensor<1x8x8x4xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %all = "stablehlo.all_gather"(%w) <{all_gather_dim = 2 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<1x8x4x4xf32>) -> tensor<1x8x8x4xf32>
  %g = stablehlo.convolution(%dy, %k) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x2xf32>, tensor<1x1x4x2xf32>) -> tensor<1x8x8x4xf32>
  // CHECK: %[[DB:.*]] = stablehlo.reduce
  %db = stablehlo.reduce(%g init: %zero) applies stablehlo.add across dimensions = [0, 1, 2] : (tensor<1x8x8x4xf32>, tensor<f32>) -> tensor<4xf32>
  %db2 = stablehlo.slice %db [0:2] : (tensor<4xf32>) -> tensor<2xf32>
  // CHECK: %[[DK:.*]] = stablehlo.convolution(%arg1
  %dk = stablehlo.convolution(%h, %dy) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x4xf32>, tensor<1x8x8x2xf32>) -> tensor<1x1x4x2xf32>
  // CHECK: %[[B:.*]]:2 = stablehlo.optimization_barrier %{{.*}}, %[[DK]] :
  // CHECK: stablehlo.convolution(%[[B]]#0
  %g1 = stablehlo.convolution(%g, %k1) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x8x8x4xf32>
  %dk1 = stablehlo.convolution(%x, %g) dim_numbers = [f, 0, 1, b]x[i, 0, 1, o]->[0, 1, b, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x4xf32>, tensor<1x8x8x4xf32>) -> tensor<1x1x4x4xf32>
  // CHECK-NOT: optimization_barrier
  %g2 = stablehlo.convolution(%g1, %k1) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x4xf32>, tensor<1x1x4x4xf32>) -> tensor<1x8x8x4xf32>
  return %db2, %dk, %dk1, %g2, %all : tensor<2xf32>, tensor<1x1x4x2xf32>, tensor<1x1x4x4xf32>, tensor<1x8x8x4xf32>, tensor<1x8x8x4xf32>
}

// -----

// A head that is a product has its gradient where the program has it.
// CHECK-LABEL: func.func @main
// CHECK-NOT: optimization_barrier
func.func @main(%h: tensor<8x4xf32>, %dy: tensor<8x4xf32>, %w: tensor<4x4xf32>) -> (tensor<4x4xf32>, tensor<8x8xf32>) {
  %all = "stablehlo.all_gather"(%w) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x4xf32>) -> tensor<4x8xf32>
  %dw = stablehlo.dot_general %h, %dy, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %dx = stablehlo.dot_general %dy, %w, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %dx1 = stablehlo.dot_general %dx, %w, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %dx2 = stablehlo.dot_general %dx1, %all, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %dw, %dx2 : tensor<4x4xf32>, tensor<8x8xf32>
}
