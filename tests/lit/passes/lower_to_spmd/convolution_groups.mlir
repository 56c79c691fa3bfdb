// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// Groups over x: every device has its share of them.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<4x8x8x2xf32>, %[[ARG1:[a-z0-9]+]]: tensor<3x3x1x4xf32>) -> tensor<4x6x6x4xf32>
// CHECK: [[V0:%[a-z0-9_]+]] = stablehlo.convolution(%[[ARG0]], %[[ARG1]]) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<4x8x8x2xf32>, tensor<3x3x1x4xf32>) -> tensor<4x6x6x4xf32>
// CHECK: return [[V0]] : tensor<4x6x6x4xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4x8x8x4xf32> {alpa.sharding = #alpa.sharding<RRRS0>}, %k: tensor<3x3x1x8xf32> {alpa.sharding = #alpa.sharding<RRRS0>}) -> (tensor<4x6x6x8xf32> {alpa.sharding = #alpa.sharding<RRRS0>}) {
    %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {alpa.operands = [#alpa.sharding<RRRS0>, #alpa.sharding<RRRS0>], alpa.results = [#alpa.sharding<RRRS0>], alpa.strategy = #alpa.strategy<a=[0]>, batch_group_count = 1 : i64, feature_group_count = 4 : i64} : (tensor<4x8x8x4xf32>, tensor<3x3x1x8xf32>) -> tensor<4x6x6x8xf32>
    return {alpa.operands = [#alpa.sharding<RRRS0>], alpa.results = []} %0 : tensor<4x6x6x8xf32>
  }
}
