// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -verify-diagnostics

// Only a splat can be made in parts: the planner keeps other constants whole.
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main() -> (tensor<4xi32> {alpa.sharding = #alpa.sharding<S0>}) {
    // expected-error @below {{strategy #alpa.strategy<a=[0]> splits factor a, which is replicated}}
    %0 = stablehlo.constant {alpa.operands = [], alpa.results = [#alpa.sharding<S0>], alpa.strategy = #alpa.strategy<a=[0]>} dense<[1, 2, 3, 4]> : tensor<4xi32>
    return {alpa.operands = [#alpa.sharding<S0>], alpa.results = []} %0 : tensor<4xi32>
  }
}
