// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd | FileCheck %s

// A part of a barrier that uses what comes out of another one stands behind that one when it is
// joined, and so behind the other parts of its own.

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  // CHECK-LABEL: @main
  // CHECK: %[[FIRST:.+]]:2 = stablehlo.optimization_barrier %arg0, %arg1
  // CHECK: %[[TANH:.+]] = stablehlo.tanh %[[FIRST]]#0
  // CHECK: stablehlo.optimization_barrier
  // CHECK-SAME: tensor<4x4xf32>, tensor<4x4xf32>
  func.func @main(%x: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %y: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = stablehlo.optimization_barrier {alpa.barrier = 0 : i64, alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>]} %x : tensor<8x4xf32>
    %1 = stablehlo.tanh %0 {alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>]} : tensor<8x4xf32>
    %2 = stablehlo.optimization_barrier {alpa.barrier = 1 : i64, alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>]} %1 : tensor<8x4xf32>
    %3 = stablehlo.optimization_barrier {alpa.barrier = 1 : i64, alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>]} %y : tensor<8x4xf32>
    %4 = stablehlo.optimization_barrier {alpa.barrier = 0 : i64, alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>]} %y : tensor<8x4xf32>
    "func.return"(%2, %3, %4) {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = []} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> ()
  }
}
