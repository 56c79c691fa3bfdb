// RUN: alpa-capi-test describe %s | FileCheck %s

// What devices combine other than by adding: the maximum of 4 halves is an all-reduce (kind 0) of
// integers of 16 bits over axis 0, `or` of 4 integers on 2 devices a gather (kind 1) of both.
// CHECK-LABEL: communication:
// CHECK: kind: 0 1
// CHECK: axes: 1 1
// CHECK: bytes: 8 32
// CHECK-LABEL: memory:
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func public @main(%x: tensor<4x8xf16> {alpa.sharding = #alpa.sharding<RS0>}, %y: tensor<4x8xi32> {alpa.sharding = #alpa.sharding<RS0>}) -> (tensor<4xf16> {alpa.sharding = #alpa.sharding<R>}, tensor<4xi32> {alpa.sharding = #alpa.sharding<R>}) {
    %c = stablehlo.constant {alpa.operands = [], alpa.results = [#alpa.sharding<>], alpa.strategy = #alpa.strategy<>} dense<0xFC00> : tensor<f16>
    %z = stablehlo.constant {alpa.operands = [], alpa.results = [#alpa.sharding<>], alpa.strategy = #alpa.strategy<>} dense<0> : tensor<i32>
    %0 = stablehlo.reduce(%x init: %c) applies stablehlo.maximum across dimensions = [1] {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<>], alpa.results = [#alpa.sharding<R>], alpa.strategy = #alpa.strategy<b=[0]>} : (tensor<4x8xf16>, tensor<f16>) -> tensor<4xf16>
    %1 = stablehlo.reduce(%y init: %z) applies stablehlo.or across dimensions = [1] {alpa.strategy = #alpa.strategy<b=[0]>, alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<>], alpa.results = [#alpa.sharding<R>]} : (tensor<4x8xi32>, tensor<i32>) -> tensor<4xi32>
    "func.return"(%0, %1) {alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = []} : (tensor<4xf16>, tensor<4xi32>) -> ()
  }
}
