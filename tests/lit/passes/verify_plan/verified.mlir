// RUN: stablehlo-alpa-opt %s -alpa-verify-plan | stablehlo-alpa-opt -alpa-verify-plan | FileCheck %s

// A plan that follows from itself is left as it is: sums that are partial through a linear operator,
// loops, branches that capture, and constants that a combiner uses.
// CHECK: module attributes {alpa.mesh = #alpa.mesh<["x"=2]>}
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  // CHECK: @main
  func.func public @main(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RS0>}, %w: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %n: tensor<i32> {alpa.sharding = #alpa.sharding<>}) -> (tensor<4x4xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    // CHECK: stablehlo.dot_general {{.*}}alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<c=[0]>
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<c=[0]>} : (tensor<4x8xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    // CHECK: stablehlo.negate {{.*}}alpa.strategy = #alpa.strategy<linear(0)=[0]>
    %1 = stablehlo.negate %0 {alpa.operands = [#alpa.sharding<RRP0>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<linear(0)=[0]>} : tensor<4x4xf32>
    %2 = alpa.reshard %1 from <RRP0> to <RS0> : tensor<4x4xf32>
    %3 = "stablehlo.case"(%n) ({
      %4 = stablehlo.sine %2 {alpa.operands = [#alpa.sharding<RS0>], alpa.results = [#alpa.sharding<RS0>], alpa.strategy = #alpa.strategy<b=[0]>} : tensor<4x4xf32>
      stablehlo.return %4 : tensor<4x4xf32>
    }, {
      stablehlo.return %2 {alpa.operands = [#alpa.sharding<RS0>], alpa.results = []} : tensor<4x4xf32>
    }) {alpa.operands = [#alpa.sharding<>], alpa.results = [#alpa.sharding<RS0>]} : (tensor<i32>) -> tensor<4x4xf32>
    %5 = alpa.reshard %3 from <RS0> to <RR> : tensor<4x4xf32>
    return {alpa.operands = [#alpa.sharding<RR>], alpa.results = []} %5 : tensor<4x4xf32>
  }
}
