// RUN: stablehlo-alpa-opt %s --alpa-split-phases | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-split-phases=split-backward | FileCheck %s --check-prefix=WEIGHT

// A planned stage in its phases. The activation that the backward pass needs is a local; the
// gradient is summed as it is, partial, and reduced once per step.

// CHECK-LABEL: module @forward attributes {alpa.mesh = #alpa.mesh<["x"=2]>}
// CHECK: func.func @main(%[[X:.+]]: tensor<8x4xf32> {alpa.input = 1 : i64, alpa.sharding = #alpa.sharding<S0R>}, %[[W:.+]]: tensor<4x4xf32> {alpa.input = 0 : i64, alpa.sharding = #alpa.sharding<RR>}) -> (tensor<8x4xf32> {alpa.local = 0 : i64, alpa.sharding = #alpa.sharding<S0R>}, tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>, alpa.transfer = 0 : i64})
// CHECK-LABEL: module @backward
// CHECK: func.func @main({{.*}}{alpa.local = 0 : i64, alpa.sharding = #alpa.sharding<S0R>}{{.*}}%[[SUM:.+]]: tensor<4x4xf32> {alpa.accumulator = 0 : i64, alpa.sharding = #alpa.sharding<RRP0>}) -> (tensor<4x4xf32> {alpa.accumulator = 0 : i64, alpa.sharding = #alpa.sharding<RRP0>}, tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>, alpa.transfer = 2 : i64})
// CHECK: %[[G:.+]] = stablehlo.dot_general
// CHECK: stablehlo.add %[[SUM]], %[[G]] {alpa.operands = [#alpa.sharding<RRP0>, #alpa.sharding<RRP0>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<linear(0)=[0]>}
// CHECK-LABEL: module @apply_0
// CHECK: func.func @main(%[[SUM:.+]]: tensor<4x4xf32> {alpa.accumulator = 0 : i64, alpa.sharding = #alpa.sharding<RRP0>}, %{{.+}}: tensor<4x4xf32> {alpa.input = 0 : i64
// CHECK: alpa.reshard %[[SUM]] from <RRP0> to <RR>

// With the gradients of parameters delayed.
// WEIGHT-LABEL: module @backward attributes
// WEIGHT: func.func @main({{.*}}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>, alpa.transfer = 2 : i64})
// WEIGHT-LABEL: module @backward_weight
// WEIGHT: func.func @main({{.*}}) -> (tensor<4x4xf32> {alpa.accumulator = 0 : i64
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%w: tensor<4x4xf32> {alpa.input = 0 : i64, alpa.sharding = #alpa.sharding<RR>}, %x: tensor<8x4xf32> {alpa.input = 1 : i64, alpa.sharding = #alpa.sharding<S0R>}, %c: tensor<8x4xf32> {alpa.transfer = 1 : i64, alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<8x4xf32> {alpa.transfer = 0 : i64, alpa.sharding = #alpa.sharding<S0R>}, tensor<8x4xf32> {alpa.transfer = 2 : i64, alpa.sharding = #alpa.sharding<S0R>}, tensor<4x4xf32> {alpa.output = 0 : i64, alpa.sharding = #alpa.sharding<RR>}) attributes {alpa.micro_batches = 2 : i64} {
    %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %2 = stablehlo.dot_general %0, %c, contracting_dims = [0] x [0] {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<c=[0]>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    %3 = alpa.accumulate %2 {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<RRP0>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<linear(0)=[0]>} : tensor<4x4xf32>
    %4 = stablehlo.negate %c {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8x4xf32>
    %5 = alpa.reshard %3 from <RRP0> to <RR> : tensor<4x4xf32>
    %6 = stablehlo.subtract %w, %5 {alpa.phase = 2 : i64, alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : tensor<4x4xf32>
    "func.return"(%1, %4, %6) {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>, #alpa.sharding<RR>], alpa.results = []} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4x4xf32>) -> ()
  }
}
