// RUN: stablehlo-alpa-opt %s --alpa-split-phases | FileCheck %s

// What a phase returns lies as the stage says that its results do; a plan says so there, and once is
// enough.

// CHECK-LABEL: module @apply_0
// CHECK: func.func @main({{.*}}) -> (tensor<4xf32> {alpa.output = 0 : i64, alpa.sharding = #alpa.sharding<S0>})
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%w: tensor<4xf32> {alpa.input = 0 : i64, alpa.sharding = #alpa.sharding<S0>}) -> (tensor<4xf32> {alpa.output = 0 : i64, alpa.sharding = #alpa.sharding<S0>}) attributes {alpa.micro_batches = 1 : i64} {
    %0 = stablehlo.negate %w {alpa.phase = 2 : i64, alpa.operands = [#alpa.sharding<S0>], alpa.results = [#alpa.sharding<S0>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
