// RUN: stablehlo-alpa-opt %s --alpa-split-phases=split-backward | FileCheck %s

// Another stage waits for what is made of a gradient, as clipping by a global norm has it, but only
// behind the last micro-batch: the gradient is delayed all the same.

// CHECK-LABEL: module @backward attributes
// CHECK: func.func @main({{.*}}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>, alpa.transfer = 2 : i64})
// CHECK-LABEL: module @backward_weight
// CHECK: func.func @main({{.*}}) -> (tensor<4x4xf32> {alpa.accumulator = 0 : i64
// CHECK-LABEL: module @apply_0
// CHECK: alpa.transfer = 3 : i64
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%w: tensor<4x4xf32> {alpa.input = 0 : i64, alpa.sharding = #alpa.sharding<RR>}, %x: tensor<8x4xf32> {alpa.input = 1 : i64, alpa.sharding = #alpa.sharding<S0R>}, %c: tensor<8x4xf32> {alpa.transfer = 1 : i64, alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<8x4xf32> {alpa.transfer = 0 : i64, alpa.sharding = #alpa.sharding<S0R>}, tensor<8x4xf32> {alpa.transfer = 2 : i64, alpa.sharding = #alpa.sharding<S0R>}, tensor<4x4xf32> {alpa.output = 0 : i64, alpa.sharding = #alpa.sharding<RR>}, tensor<4x4xf32> {alpa.once, alpa.transfer = 3 : i64, alpa.sharding = #alpa.sharding<RR>}) attributes {alpa.micro_batches = 2 : i64} {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %2 = stablehlo.dot_general %0, %c, contracting_dims = [0] x [0] {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<c=[0]>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    %3 = alpa.accumulate %2 {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<RRP0>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<linear(0)=[0]>} : tensor<4x4xf32>
    %4 = stablehlo.negate %c {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8x4xf32>
    %5 = alpa.reshard %3 from <RRP0> to <RR> : tensor<4x4xf32>
    %6 = stablehlo.subtract %w, %5 {alpa.phase = 2 : i64, alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : tensor<4x4xf32>
    %7 = stablehlo.negate %5 {alpa.phase = 2 : i64, alpa.operands = [#alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : tensor<4x4xf32>
    "func.return"(%1, %4, %6, %7) {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>, #alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = []} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4x4xf32>, tensor<4x4xf32>) -> ()
  }
}
