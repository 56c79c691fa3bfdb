// RUN: stablehlo-alpa-opt %s -allow-unregistered-dialect -alpa-export-shardings | FileCheck %s

// The parts of a barrier wait for each other again; their constraints come
// after it.

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  // CHECK: %[[A:.*]] = "sdy.sharding_constraint"(%arg0)
  // CHECK: %[[B:.*]] = "sdy.sharding_constraint"(%arg1)
  // CHECK: %[[R:.*]]:2 = stablehlo.optimization_barrier %[[A]], %[[B]]
  // CHECK-NEXT: %[[C:.*]] = "sdy.sharding_constraint"(%[[R]]#0) {{.*}}[{"x"}, {}]>
  // CHECK-NEXT: %[[D:.*]] = "sdy.sharding_constraint"(%[[R]]#1) {{.*}}[{}, {"x"}]>
  // CHECK-NEXT: return %[[C]], %[[D]]
  func.func @main(%x: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %y: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RS0>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RS0>}) {
    %0 = stablehlo.optimization_barrier {alpa.barrier = 0 : i64, alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>]} %x : tensor<8x4xf32>
    %1 = stablehlo.optimization_barrier {alpa.barrier = 0 : i64, alpa.strategy = #alpa.strategy<b=[0]>, alpa.operands = [#alpa.sharding<RS0>], alpa.results = [#alpa.sharding<RS0>]} %y : tensor<4x8xf32>
    "func.return"(%0, %1) {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<RS0>], alpa.results = []} : (tensor<8x4xf32>, tensor<4x8xf32>) -> ()
  }
}
