// RUN: stablehlo-alpa-opt %s --pass-pipeline="builtin.module(alpa-split-micro-batches{batch=0 micro-batches=2})" | FileCheck %s

// Rows in another order are made of the whole batch, by every micro-batch; the product has a part of them.

// CHECK: %[[ROWS:.+]] = stablehlo.reverse %{{.+}}alpa.results = [#alpa.sharding<RR>]
// CHECK: stablehlo.dot_general %[[ROWS]], {{.+}}alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<RR>]
func.func @main(%x: tensor<8x4xf32>, %w: tensor<4x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.reverse %x, dims = [0] : tensor<8x4xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %2 = stablehlo.tanh %1 : tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}
