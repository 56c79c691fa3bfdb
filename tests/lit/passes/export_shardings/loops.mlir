// RUN: stablehlo-alpa-opt %s -allow-unregistered-dialect -alpa-export-shardings | FileCheck %s

// The values of a loop keep their shardings from turn to turn.
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  // CHECK: stablehlo.while
  // CHECK: stablehlo.compare
  // CHECK: do {
  // CHECK: %[[A:.*]] = "sdy.sharding_constraint"(%{{.*}}) {{.*}}[{"x"}]>
  // CHECK: %[[T:.*]] = stablehlo.tanh %[[A]]
  // CHECK: %[[C:.*]] = "sdy.sharding_constraint"(%[[T]]) {{.*}}[{"x"}]>
  // CHECK: stablehlo.return %{{.*}}, %[[C]]
  func.func @main(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) -> (tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) {
    %c = stablehlo.constant {alpa.operands = [], alpa.results = [#alpa.sharding<>], alpa.strategy = #alpa.strategy<>} dense<0> : tensor<i32>
    %n = stablehlo.constant {alpa.operands = [], alpa.results = [#alpa.sharding<>], alpa.strategy = #alpa.strategy<>} dense<4> : tensor<i32>
    %one = stablehlo.constant {alpa.operands = [], alpa.results = [#alpa.sharding<>], alpa.strategy = #alpa.strategy<>} dense<1> : tensor<i32>
    %0:2 = "stablehlo.while"(%c, %x) ({
    ^bb0(%i: tensor<i32>, %a: tensor<8xf32>):
      %1 = "stablehlo.compare"(%i, %n) {comparison_direction = #stablehlo<comparison_direction LT>, alpa.operands = [#alpa.sharding<>, #alpa.sharding<>], alpa.results = [#alpa.sharding<>], alpa.strategy = #alpa.strategy<>} : (tensor<i32>, tensor<i32>) -> tensor<i1>
      "stablehlo.return"(%1) {alpa.operands = [#alpa.sharding<>], alpa.results = []} : (tensor<i1>) -> ()
    }, {
    ^bb0(%i: tensor<i32>, %a: tensor<8xf32>):
      %1 = stablehlo.add %i, %one {alpa.operands = [#alpa.sharding<>, #alpa.sharding<>], alpa.results = [#alpa.sharding<>], alpa.strategy = #alpa.strategy<>} : tensor<i32>
      %2 = stablehlo.tanh %a {alpa.operands = [#alpa.sharding<S0>], alpa.results = [#alpa.sharding<S0>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8xf32>
      "stablehlo.return"(%1, %2) {alpa.operands = [#alpa.sharding<>, #alpa.sharding<S0>], alpa.results = []} : (tensor<i32>, tensor<8xf32>) -> ()
    }) {alpa.operands = [#alpa.sharding<>, #alpa.sharding<S0>], alpa.results = [#alpa.sharding<>, #alpa.sharding<S0>]} : (tensor<i32>, tensor<8xf32>) -> (tensor<i32>, tensor<8xf32>)
    "func.return"(%0#1) {alpa.operands = [#alpa.sharding<S0>], alpa.results = []} : (tensor<8xf32>) -> ()
  }
}
