// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// A splat is made as large as the block.

// CHECK-LABEL: func.func @main() -> tensor<2xi32>
// CHECK: [[C:%[a-z0-9_]+]] = stablehlo.constant dense<7> : tensor<2xi32>
// CHECK: return [[C]] : tensor<2xi32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main() -> (tensor<4xi32> {alpa.sharding = #alpa.sharding<S0>}) {
    %0 = stablehlo.constant {alpa.operands = [], alpa.results = [#alpa.sharding<S0>], alpa.strategy = #alpa.strategy<a=[0]>} dense<7> : tensor<4xi32>
    return {alpa.operands = [#alpa.sharding<S0>], alpa.results = []} %0 : tensor<4xi32>
  }
}
