// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// Carried values keep one sharding: the regions' arguments become local with the operands.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<2x8xf32>, %[[ARG1:[a-z0-9]+]]: tensor<i32>) -> tensor<2x8xf32>
// CHECK: [[C:%[a-z0-9_]+]] = stablehlo.constant dense<1> : tensor<i32>
// CHECK: [[V0:%[a-z0-9_]+]]:2 = stablehlo.while(%iterArg = %[[ARG1]], %iterArg_0 = %[[ARG0]]) : tensor<i32>, tensor<2x8xf32>
// CHECK: cond
// CHECK: [[V1:%[a-z0-9_]+]] = stablehlo.compare GT, %iterArg, [[C]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK: stablehlo.return [[V1]] : tensor<i1>
// CHECK: } do
// CHECK: [[V1_2:%[a-z0-9_]+]] = stablehlo.subtract %iterArg, [[C]] : tensor<i32>
// CHECK: [[V2:%[a-z0-9_]+]] = stablehlo.tanh %iterArg_0 : tensor<2x8xf32>
// CHECK: stablehlo.return [[V1_2]], [[V2]] : tensor<i32>, tensor<2x8xf32>
// CHECK: return [[V0]]#1 : tensor<2x8xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<S0R>}, %n: tensor<i32> {alpa.sharding = #alpa.sharding<>}) -> (tensor<4x8xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %one = stablehlo.constant {alpa.operands = [], alpa.results = [#alpa.sharding<>], alpa.strategy = #alpa.strategy<>} dense<1> : tensor<i32>
    %0:2 = stablehlo.while(%i = %n, %c = %x) : tensor<i32>, tensor<4x8xf32> attributes {alpa.operands = [#alpa.sharding<>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<>, #alpa.sharding<S0R>]}
     cond {
      %p = stablehlo.compare GT, %i, %one {alpa.operands = [#alpa.sharding<>, #alpa.sharding<>], alpa.results = [#alpa.sharding<>], alpa.strategy = #alpa.strategy<>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p {alpa.operands = [#alpa.sharding<>], alpa.results = []} : tensor<i1>
    } do {
      %j = stablehlo.subtract %i, %one {alpa.operands = [#alpa.sharding<>, #alpa.sharding<>], alpa.results = [#alpa.sharding<>], alpa.strategy = #alpa.strategy<>} : tensor<i32>
      %d = stablehlo.tanh %c {alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<4x8xf32>
      stablehlo.return %j, %d {alpa.operands = [#alpa.sharding<>, #alpa.sharding<S0R>], alpa.results = []} : tensor<i32>, tensor<4x8xf32>
    }
    return {alpa.operands = [#alpa.sharding<S0R>], alpa.results = []} %0#1 : tensor<4x8xf32>
  }
}
