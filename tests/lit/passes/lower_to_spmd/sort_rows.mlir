// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// Rows are sorted where they are.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<2x8xf32>) -> tensor<2x8xf32>
// CHECK: [[V0:%[a-z0-9_]+]] = "stablehlo.sort"(%[[ARG0]]) <{dimension = 1 : i64, is_stable = true}> (
// CHECK: {{\^bb[0-9]+}}({{%[a-z0-9]+}}: tensor<f32>, {{%[a-z0-9]+}}: tensor<f32>):
// CHECK: [[V1:%[a-z0-9_]+]] = stablehlo.compare LT, {{%[a-z0-9]+}}, {{%[a-z0-9]+}} : (tensor<f32>, tensor<f32>) -> tensor<i1>
// CHECK: stablehlo.return [[V1]] : tensor<i1>
// CHECK: }) : (tensor<2x8xf32>) -> tensor<2x8xf32>
// CHECK: return [[V0]] : tensor<2x8xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<4x8xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = "stablehlo.sort"(%x) <{dimension = 1 : i64, is_stable = true}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    }) {alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
    return {alpa.operands = [#alpa.sharding<S0R>], alpa.results = []} %0 : tensor<4x8xf32>
  }
}
