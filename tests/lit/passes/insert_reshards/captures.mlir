// RUN: stablehlo-alpa-opt %s --alpa-insert-reshards | FileCheck %s

// The region of a reducer is copied as it is: what it takes from outside is brought to every device.

// CHECK: %[[ALL:.+]] = alpa.reshard %arg1 from <P0> to <> : tensor<f32>
// CHECK: %[[TABLE:.+]] = alpa.reshard %arg2 from <S0> to <R> : tensor<8xf32>
// CHECK: stablehlo.reduce
// CHECK:   stablehlo.maximum %{{.+}}, %[[ALL]]
// CHECK:   stablehlo.slice %[[TABLE]]
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<S0R>}, %t: tensor<f32> {alpa.sharding = #alpa.sharding<P0>}, %table: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) -> (tensor<4xf32> {alpa.sharding = #alpa.sharding<S0>}) {
    %c = stablehlo.constant {alpa.operands = [], alpa.results = [#alpa.sharding<>]} dense<0.0> : tensor<f32>
    %0 = "stablehlo.reduce"(%x, %c) <{dimensions = array<i64: 1>}> ({
    ^bb0(%l: tensor<f32>, %r: tensor<f32>):
      %1 = stablehlo.maximum %l, %t : tensor<f32>
      %2 = stablehlo.slice %table [0:1] : (tensor<8xf32>) -> tensor<1xf32>
      %3 = stablehlo.reshape %2 : (tensor<1xf32>) -> tensor<f32>
      %4 = stablehlo.multiply %1, %3 : tensor<f32>
      %5 = stablehlo.add %4, %r : tensor<f32>
      stablehlo.return %5 : tensor<f32>
    }) {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<>], alpa.results = [#alpa.sharding<S0>]} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    return {alpa.operands = [#alpa.sharding<S0>], alpa.results = []} %0 : tensor<4xf32>
  }
}
