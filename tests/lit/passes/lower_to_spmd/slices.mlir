// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// Slices, pads and dynamic slices of dimensions that are whole; the split one shrinks with its block.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<2x8xf32>, %[[ARG1:[a-z0-9]+]]: tensor<i32>) -> (tensor<2x3xf32>, tensor<2x10xf32>, tensor<2x2xf32>)
// CHECK: [[C:%[a-z0-9_]+]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK: [[CST:%[a-z0-9_]+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK: [[V0:%[a-z0-9_]+]] = stablehlo.slice %[[ARG0]] [0:2, 2:5] : (tensor<2x8xf32>) -> tensor<2x3xf32>
// CHECK: [[V1:%[a-z0-9_]+]] = stablehlo.pad %[[ARG0]], [[CST]], low = [0, 1], high = [0, 1], interior = [0, 0] : (tensor<2x8xf32>, tensor<f32>) -> tensor<2x10xf32>
// CHECK: [[V2:%[a-z0-9_]+]] = stablehlo.dynamic_slice %[[ARG0]], [[C]], %[[ARG1]], sizes = [2, 2] : (tensor<2x8xf32>, tensor<i32>, tensor<i32>) -> tensor<2x2xf32>
// CHECK: return [[V0]], [[V1]], [[V2]] : tensor<2x3xf32>, tensor<2x10xf32>, tensor<2x2xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<S0R>}, %i: tensor<i32> {alpa.sharding = #alpa.sharding<>}) -> (tensor<4x3xf32> {alpa.sharding = #alpa.sharding<S0R>}, tensor<4x10xf32> {alpa.sharding = #alpa.sharding<S0R>}, tensor<4x2xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %z = stablehlo.constant {alpa.operands = [], alpa.results = [#alpa.sharding<>], alpa.strategy = #alpa.strategy<>} dense<0> : tensor<i32>
    %v = stablehlo.constant {alpa.operands = [], alpa.results = [#alpa.sharding<>], alpa.strategy = #alpa.strategy<>} dense<0.0> : tensor<f32>
    %0 = stablehlo.slice %x [0:4, 2:5] {alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<4x8xf32>) -> tensor<4x3xf32>
    %1 = stablehlo.pad %x, %v, low = [0, 1], high = [0, 1], interior = [0, 0] {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x10xf32>
    %2 = stablehlo.dynamic_slice %x, %z, %i, sizes = [4, 2] {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<>, #alpa.sharding<>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x2xf32>
    return {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = []} %0, %1, %2 : tensor<4x3xf32>, tensor<4x10xf32>, tensor<4x2xf32>
  }
}
