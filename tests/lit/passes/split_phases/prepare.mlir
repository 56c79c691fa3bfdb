// RUN: stablehlo-alpa-opt %s --alpa-split-phases -split-input-file | FileCheck %s

// What is the same for every micro-batch runs before the first of them.

// CHECK-LABEL: module @prepare
// CHECK: func.func @main(%[[W:.+]]: tensor<2x4xf32> {alpa.input = 0 : i64, {{.*}}) -> (tensor<1x4xf32> {alpa.sharding = #alpa.sharding<RR>, alpa.transfer = 0 : i64})
// CHECK: stablehlo.slice %[[W]]
// CHECK-LABEL: module @forward
// CHECK: func.func @main(%{{.+}}: tensor<1x4xf32> {alpa.input = 1 : i64
// CHECK-NOT: stablehlo.slice
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%w: tensor<2x4xf32> {alpa.input = 0 : i64, alpa.sharding = #alpa.sharding<RR>}, %x: tensor<1x4xf32> {alpa.input = 1 : i64, alpa.sharding = #alpa.sharding<RR>}) -> (tensor<1x4xf32> {alpa.transfer = 0 : i64, alpa.sharding = #alpa.sharding<RR>}, tensor<1x4xf32> {alpa.transfer = 1 : i64, alpa.sharding = #alpa.sharding<RR>}) {
    %0 = stablehlo.slice %w [1:2, 0:4] {alpa.layer = 0 : i64, alpa.once, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : (tensor<2x4xf32>) -> tensor<1x4xf32>
    %1 = stablehlo.tanh %x {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : tensor<1x4xf32>
    "func.return"(%0, %1) {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = []} : (tensor<1x4xf32>, tensor<1x4xf32>) -> ()
  }
}

// -----

// What other stages get of it once is brought to their sharding there, too.

// CHECK-LABEL: module @prepare
// CHECK: stablehlo.slice
// CHECK: alpa.reshard
// CHECK-LABEL: module @forward
// CHECK-NOT: alpa.reshard
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%w: tensor<4x4xf32> {alpa.input = 0 : i64, alpa.sharding = #alpa.sharding<RR>}, %x: tensor<1x4xf32> {alpa.input = 1 : i64, alpa.sharding = #alpa.sharding<RR>}) -> (tensor<2x4xf32> {alpa.once, alpa.transfer = 0 : i64, alpa.sharding = #alpa.sharding<S0R>}, tensor<1x4xf32> {alpa.transfer = 1 : i64, alpa.sharding = #alpa.sharding<RR>}) {
    %0 = stablehlo.slice %w [2:4, 0:4] {alpa.layer = 0 : i64, alpa.once, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : (tensor<4x4xf32>) -> tensor<2x4xf32>
    %1 = alpa.reshard %0 from <RR> to <S0R> : tensor<2x4xf32>
    %2 = stablehlo.tanh %x {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : tensor<1x4xf32>
    "func.return"(%1, %2) {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<RR>], alpa.results = []} : (tensor<2x4xf32>, tensor<1x4xf32>) -> ()
  }
}
