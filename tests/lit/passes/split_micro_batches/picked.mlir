// RUN: stablehlo-alpa-opt %s --split-input-file --pass-pipeline="builtin.module(alpa-split-micro-batches{batch=0 micro-batches=2})" | FileCheck %s

// The largest of the batch is that of whole sines: what is compared with it is part of them.

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.sine {{.+}}S0R
// CHECK: %[[SINES:.+]] = stablehlo.sine %{{.+}}alpa.results = [#alpa.sharding<RR>]
// CHECK-NOT: stablehlo.sine
// CHECK: stablehlo.reduce(%[[SINES]] init
// CHECK: stablehlo.compare EQ, %[[SINES]], {{.+}}alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>]
func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.sine %x : tensor<8x4xf32>
  %0 = stablehlo.reduce(%s init: %least) applies stablehlo.maximum across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.compare EQ, %s, %1 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x4xi1>
  %3 = stablehlo.convert %2 : (tensor<8x4xi1>) -> tensor<8x4xf32>
  %4 = stablehlo.dot_general %3, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %4 : tensor<8x4xf32>
}

// -----

// Their mean is no element of them: each micro-batch makes its own part besides.

// CHECK-LABEL: func.func @main
// CHECK-DAG: stablehlo.sine %{{.+}}alpa.results = [#alpa.sharding<S0R>]
// CHECK-DAG: stablehlo.sine %{{.+}}alpa.results = [#alpa.sharding<RR>]
func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %s = stablehlo.sine %x : tensor<8x4xf32>
  %0 = stablehlo.reduce(%s init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8x4xf32>, tensor<f32>) -> tensor<4xf32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [1] : (tensor<4xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.subtract %s, %1 : tensor<8x4xf32>
  %3 = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}
