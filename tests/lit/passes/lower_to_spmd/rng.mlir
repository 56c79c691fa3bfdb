// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// Random numbers of the first device reach all others: a state that each device has for itself
// makes other ones on each.

// CHECK: %[[OWN:.+]] = stablehlo.rng
// CHECK: %[[IS_FIRST:.+]] = stablehlo.compare EQ
// CHECK: %[[SHARE:.+]] = stablehlo.select %[[IS_FIRST]], %[[OWN]]
// CHECK: %[[ALL:.+]] = "stablehlo.all_reduce"(%[[SHARE]]) {{.*}}replica_groups = dense<{{\[\[}}0, 1, 2, 3]]>
// CHECK: stablehlo.add
// CHECK: return %[[ALL]]
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=2]>} {
  func.func @main() -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %a = stablehlo.constant {alpa.strategy = #alpa.strategy<>, alpa.operands = [], alpa.results = [#alpa.sharding<>]} dense<0.0> : tensor<f32>
    %b = stablehlo.constant {alpa.strategy = #alpa.strategy<>, alpa.operands = [], alpa.results = [#alpa.sharding<>]} dense<1.0> : tensor<f32>
    %shape = stablehlo.constant {alpa.strategy = #alpa.strategy<>, alpa.operands = [], alpa.results = [#alpa.sharding<R>]} dense<[8, 4]> : tensor<2xi64>
    %0 = stablehlo.rng %a, %b, %shape, distribution = UNIFORM {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<>, #alpa.sharding<>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<RR>]} : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<8x4xf32>
    return {alpa.operands = [#alpa.sharding<RR>], alpa.results = []} %0 : tensor<8x4xf32>
  }
}
