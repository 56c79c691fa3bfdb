// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// The maximum over a split dimension: each device's own, then an all-reduce of integers in the same
// order, among which NaN is the greatest.

// CHECK: %[[OWN:.+]] = stablehlo.reduce(%arg0 {{.*}} applies stablehlo.maximum across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: %[[IS_NAN:.+]] = stablehlo.compare NE, %[[OWN]], %[[OWN]]
// CHECK: %[[BITS:.+]] = stablehlo.bitcast_convert %[[OWN]] : (tensor<4xf32>) -> tensor<4xi32>
// CHECK: %[[SIGN:.+]] = stablehlo.shift_right_arithmetic %[[BITS]]
// CHECK: %[[FLIPPED:.+]] = stablehlo.and %[[SIGN]]
// CHECK: %[[KEY:.+]] = stablehlo.xor %[[BITS]], %[[FLIPPED]]
// CHECK: %[[SENT:.+]] = stablehlo.select %[[IS_NAN]], %{{.+}}, %[[KEY]]
// CHECK: "stablehlo.all_reduce"(%[[SENT]])
// CHECK: stablehlo.maximum {{.*}} : tensor<i32>
// CHECK: (tensor<4xi32>) -> tensor<4xi32>
// CHECK: stablehlo.bitcast_convert {{.*}} : (tensor<4xi32>) -> tensor<4xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RS0>}) -> (tensor<4xf32> {alpa.sharding = #alpa.sharding<R>}) {
    %c = stablehlo.constant {alpa.operands = [], alpa.results = [#alpa.sharding<>], alpa.strategy = #alpa.strategy<>} dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %c) applies stablehlo.maximum across dimensions = [1] {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<>], alpa.results = [#alpa.sharding<R>], alpa.strategy = #alpa.strategy<b=[0]>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    return {alpa.operands = [#alpa.sharding<R>], alpa.results = []} %0 : tensor<4xf32>
  }
}
