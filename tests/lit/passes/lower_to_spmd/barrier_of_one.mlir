// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd | FileCheck %s

// Of a barrier whose other parts nobody needs, the one that is left stays where it is.

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  // CHECK-LABEL: @main
  // CHECK-NEXT: %[[ONE:.+]] = stablehlo.optimization_barrier %arg0 : tensor<4x4xf32>
  // CHECK-NEXT: %[[TANH:.+]] = stablehlo.tanh %[[ONE]]
  // CHECK-NEXT: return %[[TANH]]
  func.func @main(%x: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = stablehlo.optimization_barrier {alpa.barrier = 0 : i64, alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>]} %x : tensor<8x4xf32>
    %1 = stablehlo.tanh %0 {alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>]} : tensor<8x4xf32>
    "func.return"(%1) {alpa.operands = [#alpa.sharding<S0R>], alpa.results = []} : (tensor<8x4xf32>) -> ()
  }
}
