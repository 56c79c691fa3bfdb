// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// No all-reduce takes `or` of integers: what the devices have is gathered and reduced on each.

// CHECK: %[[OWN:.+]] = stablehlo.reduce(%arg0 {{.*}} applies stablehlo.or
// CHECK: %[[BLOCK:.+]] = stablehlo.reshape %[[OWN]] : (tensor<4xi32>) -> tensor<4x1xi32>
// CHECK: %[[ALL:.+]] = "stablehlo.all_gather"(%[[BLOCK]]) {{.*}} : (tensor<4x1xi32>) -> tensor<4x2xi32>
// CHECK: %[[RESULT:.+]] = stablehlo.reduce(%[[ALL]] {{.*}} applies stablehlo.or across dimensions = [1]
// CHECK: return %[[RESULT]]
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4x8xi32> {alpa.sharding = #alpa.sharding<RS0>}) -> (tensor<4xi32> {alpa.sharding = #alpa.sharding<R>}) {
    %c = stablehlo.constant {alpa.strategy = #alpa.strategy<>, alpa.operands = [], alpa.results = [#alpa.sharding<>]} dense<0> : tensor<i32>
    %0 = stablehlo.reduce(%x init: %c) applies stablehlo.or across dimensions = [1] {alpa.strategy = #alpa.strategy<b=[0]>, alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<>], alpa.results = [#alpa.sharding<R>]} : (tensor<4x8xi32>, tensor<i32>) -> tensor<4xi32>
    return {alpa.operands = [#alpa.sharding<R>], alpa.results = []} %0 : tensor<4xi32>
  }
}
