// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// Splitting and merging dimensions keeps the major one split.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<2x6xf32>) -> (tensor<12xf32>, tensor<1x2x6xf32>)
// CHECK: [[V0:%[a-z0-9_]+]] = stablehlo.reshape %[[ARG0]] : (tensor<2x6xf32>) -> tensor<12xf32>
// CHECK: [[V1:%[a-z0-9_]+]] = stablehlo.reshape %[[ARG0]] : (tensor<2x6xf32>) -> tensor<1x2x6xf32>
// CHECK: return [[V0]], [[V1]] : tensor<12xf32>, tensor<1x2x6xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4x6xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<24xf32> {alpa.sharding = #alpa.sharding<S0>}, tensor<2x2x6xf32> {alpa.sharding = #alpa.sharding<S0RR>}) {
    %0 = stablehlo.reshape %x {alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<4x6xf32>) -> tensor<24xf32>
    %1 = stablehlo.reshape %x {alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0RR>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<4x6xf32>) -> tensor<2x2x6xf32>
    return {alpa.operands = [#alpa.sharding<S0>, #alpa.sharding<S0RR>], alpa.results = []} %0, %1 : tensor<24xf32>, tensor<2x2x6xf32>
  }
}
