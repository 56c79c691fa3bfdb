// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd | FileCheck %s

// The body of a computation that its author has split is one device's program already: it comes in the
// place of the operator as it is, its collectives too.
// CHECK-LABEL: func.func @main
// CHECK-SAME:  (%[[X:.*]]: tensor<4x4xf32>) -> tensor<4x4xf32>
// CHECK-NEXT:  %[[T:.*]] = stablehlo.tanh %[[X]] : tensor<4x4xf32>
// CHECK-NEXT:  %[[R:.*]] = "stablehlo.all_reduce"(%[[T]]) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 2], [1, 3]]>
// CHECK:       %[[S:.*]] = stablehlo.sine %[[R]] : tensor<4x4xf32>
// CHECK-NEXT:  return %[[S]] : tensor<4x4xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=2]>} {
  func.func @main(%x: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = stablehlo.tanh %x {alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>]} : tensor<8x4xf32>
    %1 = alpa.manual(%0) on <["x"=2, "y"=2]> ins [[["x"], []]] outs [[["x"], []]] {alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>]} : (tensor<8x4xf32>) -> tensor<8x4xf32> {
    ^bb0(%a: tensor<4x4xf32>):
      %2 = "stablehlo.all_reduce"(%a) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 2], [1, 3]]> : tensor<2x2xi64>, use_global_device_ids}> ({
      ^bb0(%c: tensor<f32>, %d: tensor<f32>):
        %4 = stablehlo.add %c, %d : tensor<f32>
        stablehlo.return %4 : tensor<f32>
      }) : (tensor<4x4xf32>) -> tensor<4x4xf32>
      alpa.yield %2 : tensor<4x4xf32>
    }
    %3 = stablehlo.sine %1 {alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>]} : tensor<8x4xf32>
    return {alpa.operands = [#alpa.sharding<S0R>], alpa.results = []} %3 : tensor<8x4xf32>
  }
}
