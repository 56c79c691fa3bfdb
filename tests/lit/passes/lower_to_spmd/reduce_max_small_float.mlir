// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// XLA has no all-reduce for the maximum of floats of 8 bits: it is taken in f32, which has them all, and of
// integers in the same order.

// CHECK: %[[OWN:.+]] = stablehlo.reduce(%arg0 {{.*}} applies stablehlo.maximum {{.*}} -> tensor<4xf8E4M3FN>
// CHECK: %[[WIDE:.+]] = stablehlo.convert %[[OWN]] : (tensor<4xf8E4M3FN>) -> tensor<4xf32>
// CHECK: stablehlo.bitcast_convert %[[WIDE]] : (tensor<4xf32>) -> tensor<4xi32>
// CHECK: "stablehlo.all_reduce"
// CHECK: stablehlo.maximum {{.*}} : tensor<i32>
// CHECK: %[[ALL:.+]] = stablehlo.bitcast_convert {{.*}} : (tensor<4xi32>) -> tensor<4xf32>
// CHECK: %[[RESULT:.+]] = stablehlo.convert %[[ALL]] : (tensor<4xf32>) -> tensor<4xf8E4M3FN>
// CHECK: return %[[RESULT]]
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4x8xf8E4M3FN> {alpa.sharding = #alpa.sharding<RS0>}) -> (tensor<4xf8E4M3FN> {alpa.sharding = #alpa.sharding<R>}) {
    %c = stablehlo.constant {alpa.operands = [], alpa.results = [#alpa.sharding<>], alpa.strategy = #alpa.strategy<>} dense<-448.0> : tensor<f8E4M3FN>
    %0 = stablehlo.reduce(%x init: %c) applies stablehlo.maximum across dimensions = [1] {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<>], alpa.results = [#alpa.sharding<R>], alpa.strategy = #alpa.strategy<b=[0]>} : (tensor<4x8xf8E4M3FN>, tensor<f8E4M3FN>) -> tensor<4xf8E4M3FN>
    return {alpa.operands = [#alpa.sharding<R>], alpa.results = []} %0 : tensor<4xf8E4M3FN>
  }
}
