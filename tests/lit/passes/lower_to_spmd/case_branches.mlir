// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// Branches work on local blocks; every device takes the same one.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<i32>, %[[ARG1:[a-z0-9]+]]: tensor<2x8xf32>) -> tensor<2x8xf32>
// CHECK: [[V0:%[a-z0-9_]+]] = "stablehlo.case"(%[[ARG0]]) (
// CHECK: [[V1:%[a-z0-9_]+]] = stablehlo.sine %[[ARG1]] : tensor<2x8xf32>
// CHECK: stablehlo.return [[V1]] : tensor<2x8xf32>
// CHECK: },
// CHECK: stablehlo.return %[[ARG1]] : tensor<2x8xf32>
// CHECK: }) : (tensor<i32>) -> tensor<2x8xf32>
// CHECK: return [[V0]] : tensor<2x8xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%i: tensor<i32> {alpa.sharding = #alpa.sharding<>}, %x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<4x8xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = "stablehlo.case"(%i) ({
      %1 = stablehlo.sine %x {alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<4x8xf32>
      stablehlo.return %1 {alpa.operands = [#alpa.sharding<S0R>], alpa.results = []} : tensor<4x8xf32>
    }, {
      stablehlo.return %x {alpa.operands = [#alpa.sharding<S0R>], alpa.results = []} : tensor<4x8xf32>
    }) {alpa.operands = [#alpa.sharding<>], alpa.results = [#alpa.sharding<S0R>]} : (tensor<i32>) -> tensor<4x8xf32>
    return {alpa.operands = [#alpa.sharding<S0R>], alpa.results = []} %0 : tensor<4x8xf32>
  }
}
