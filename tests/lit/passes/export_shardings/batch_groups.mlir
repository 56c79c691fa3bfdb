// RUN: stablehlo-alpa-opt %s -allow-unregistered-dialect -alpa-export-shardings | FileCheck %s

// Groups of the batch, which XLA's partitioners cannot split, become groups of features: what lay before the examples lies before
// the features, here in front of them.

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  // CHECK: %[[X:.*]] = "sdy.sharding_constraint"(%arg0)
  // CHECK: %[[K:.*]] = "sdy.sharding_constraint"(%arg1)
  // CHECK: %[[GROUPED:.*]] = stablehlo.reshape %[[X]] : (tensor<4x8x6xf32>) -> tensor<4x8x2x3xf32>
  // CHECK: %[[MOVED:.*]] = stablehlo.transpose %[[GROUPED]], dims = [2, 0, 1, 3] : (tensor<4x8x2x3xf32>) -> tensor<2x4x8x3xf32>
  // CHECK: %[[JOINED:.*]] = stablehlo.reshape %[[MOVED]] : (tensor<2x4x8x3xf32>) -> tensor<8x8x3xf32>
  // CHECK: stablehlo.convolution(%[[JOINED]], %[[K]])
  // CHECK-SAME: batch_group_count = 1 : i64, feature_group_count = 2 : i64
  // CHECK-SAME: (tensor<8x8x3xf32>, tensor<3x4x10xf32>) -> tensor<10x8x3xf32>
  func.func @main(%x: tensor<4x8x6xf32> {alpa.sharding = #alpa.sharding<RRS0>}, %k: tensor<3x4x10xf32> {alpa.sharding = #alpa.sharding<RRS0>}) -> (tensor<10x8x3xf32> {alpa.sharding = #alpa.sharding<S0RR>}) {
    %0 = stablehlo.convolution(%x, %k) dim_numbers = [f, 0, b]x[0, i, o]->[f, 0, b], window = {pad = [[1, 1]]} {batch_group_count = 2 : i64, feature_group_count = 1 : i64, alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<RRS0>, #alpa.sharding<RRS0>], alpa.results = [#alpa.sharding<S0RR>]} : (tensor<4x8x6xf32>, tensor<3x4x10xf32>) -> tensor<10x8x3xf32>
    "func.return"(%0) {alpa.operands = [#alpa.sharding<S0RR>], alpa.results = []} : (tensor<10x8x3xf32>) -> ()
  }
}
