// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// Every device finds the place of the greatest of its block; what all have found is gathered in the
// order of the blocks, behind the vector, and the same body takes the greatest of it.

// CHECK: func.func @main(%[[X:.+]]: tensor<4x4xf32>, %[[N:.+]]: tensor<4x4xi32>)
// CHECK: %[[OWN:.+]]:2 = stablehlo.reduce(%[[X]] init: %{{.+}}), (%[[N]] init: %{{.+}}) across dimensions = [1]
// CHECK-DAG: %[[V:.+]] = stablehlo.reshape %[[OWN]]#0 : (tensor<4xf32>) -> tensor<4x1xf32>
// CHECK-DAG: %[[VS:.+]] = "stablehlo.all_gather"(%[[V]]) <{all_gather_dim = 1 {{.*}} : (tensor<4x1xf32>) -> tensor<4x2xf32>
// CHECK-DAG: %[[I:.+]] = stablehlo.reshape %[[OWN]]#1 : (tensor<4xi32>) -> tensor<4x1xi32>
// CHECK-DAG: %[[IS:.+]] = "stablehlo.all_gather"(%[[I]]) <{all_gather_dim = 1 {{.*}} : (tensor<4x1xi32>) -> tensor<4x2xi32>
// CHECK: %[[ALL:.+]]:2 = stablehlo.reduce(%[[VS]] init: %{{.+}}), (%[[IS]] init: %{{.+}}) across dimensions = [1]
// CHECK: return %[[ALL]]#1
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RS0>}, %n: tensor<4x8xi32> {alpa.sharding = #alpa.sharding<RS0>}) -> (tensor<4xi32> {alpa.sharding = #alpa.sharding<R>}) {
    %low = stablehlo.constant {alpa.strategy = #alpa.strategy<>, alpa.operands = [], alpa.results = [#alpa.sharding<>]} dense<0xFF800000> : tensor<f32>
    %zero = stablehlo.constant {alpa.strategy = #alpa.strategy<>, alpa.operands = [], alpa.results = [#alpa.sharding<>]} dense<0> : tensor<i32>
    %0:2 = "stablehlo.reduce"(%x, %n, %low, %zero) <{dimensions = array<i64: 1>}> ({
    ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
      %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      %2 = stablehlo.select %1, %a, %b : tensor<i1>, tensor<f32>
      %3 = stablehlo.select %1, %i, %j : tensor<i1>, tensor<i32>
      stablehlo.return %2, %3 : tensor<f32>, tensor<i32>
    }) {alpa.strategy = #alpa.strategy<b=[0]>, alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<RS0>, #alpa.sharding<>, #alpa.sharding<>], alpa.results = [#alpa.sharding<R>, #alpa.sharding<R>]} : (tensor<4x8xf32>, tensor<4x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
    return {alpa.operands = [#alpa.sharding<R>], alpa.results = []} %0#1 : tensor<4xi32>
  }
}
