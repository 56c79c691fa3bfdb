// RUN: stablehlo-alpa-opt %s --alpa-split-phases | FileCheck %s

// With one micro-batch there is nothing to add to: its summand is the sum.

// CHECK-LABEL: module @backward
// CHECK: func.func @main(%[[X:.+]]: tensor<8x4xf32> {alpa.batch = 1 : i64{{[^%]*}}) -> (tensor<4x4xf32> {alpa.accumulator = 0 : i64
// CHECK: %[[G:.+]] = stablehlo.dot_general %[[X]], %[[X]]
// CHECK-NOT: stablehlo.add
// CHECK: return {{.*}}%[[G]]
// CHECK-LABEL: module @apply_0
// CHECK: func.func @main(%{{.+}}: tensor<4x4xf32> {alpa.accumulator = 0 : i64
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%w: tensor<4x4xf32> {alpa.input = 0 : i64, alpa.sharding = #alpa.sharding<RR>}, %x: tensor<8x4xf32> {alpa.batch = 1 : i64, alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<4x4xf32> {alpa.output = 0 : i64, alpa.sharding = #alpa.sharding<RR>}) attributes {alpa.micro_batches = 1 : i64} {
    %0 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<c=[0]>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    %1 = alpa.accumulate %0 {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<RRP0>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<linear(0)=[0]>} : tensor<4x4xf32>
    %2 = alpa.reshard %1 from <RRP0> to <RR> : tensor<4x4xf32>
    %3 = stablehlo.subtract %w, %2 {alpa.phase = 2 : i64, alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : tensor<4x4xf32>
    "func.return"(%3) {alpa.operands = [#alpa.sharding<RR>], alpa.results = []} : (tensor<4x4xf32>) -> ()
  }
}
