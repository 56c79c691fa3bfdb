// RUN: stablehlo-alpa-opt %s --alpa-split-phases | FileCheck %s

// The backward phase computes again what one program would not store either: of a product and a
// function of it the product is kept, and nothing of a function of an argument.

// CHECK-LABEL: module @forward
// CHECK: func.func @main({{.*}}) -> (tensor<8x4xf32> {alpa.local = 0 : i64, alpa.sharding = #alpa.sharding<S0R>}, tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>, alpa.transfer = 0 : i64}) {
// CHECK-LABEL: module @backward
// CHECK: func.func @main(%[[KEPT:.+]]: tensor<8x4xf32> {alpa.local = 0 : i64
// CHECK: %[[AGAIN:.+]] = stablehlo.tanh %[[KEPT]] {{{.*}}alpa.phase = 1
// CHECK: stablehlo.dot_general %[[AGAIN]],
// CHECK: %[[SINE:.+]] = stablehlo.sine %arg{{.*}} {{{.*}}alpa.phase = 1
// CHECK: stablehlo.multiply %[[SINE]],
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%w: tensor<4x4xf32> {alpa.input = 0 : i64, alpa.sharding = #alpa.sharding<RR>}, %x: tensor<8x4xf32> {alpa.input = 1 : i64, alpa.sharding = #alpa.sharding<S0R>}, %c: tensor<8x4xf32> {alpa.transfer = 1 : i64, alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<8x4xf32> {alpa.transfer = 0 : i64, alpa.sharding = #alpa.sharding<S0R>}, tensor<8x4xf32> {alpa.transfer = 2 : i64, alpa.sharding = #alpa.sharding<S0R>}, tensor<4x4xf32> {alpa.output = 0 : i64, alpa.sharding = #alpa.sharding<RR>}) attributes {alpa.micro_batches = 2 : i64} {
    %s = stablehlo.sine %x {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8x4xf32>
    %p = stablehlo.dot_general %s, %w, contracting_dims = [1] x [0] {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %0 = stablehlo.tanh %p {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8x4xf32>
    %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] {alpa.layer = 0 : i64, alpa.phase = 0 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
    %2 = stablehlo.dot_general %0, %c, contracting_dims = [0] x [0] {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<c=[0]>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    %3 = alpa.accumulate %2 {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<RRP0>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<linear(0)=[0]>} : tensor<4x4xf32>
    %4 = stablehlo.multiply %s, %c {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8x4xf32>
    %5 = alpa.reshard %3 from <RRP0> to <RR> : tensor<4x4xf32>
    %6 = stablehlo.subtract %w, %5 {alpa.phase = 2 : i64, alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : tensor<4x4xf32>
    "func.return"(%1, %4, %6) {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>, #alpa.sharding<RR>], alpa.results = []} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<4x4xf32>) -> ()
  }
}
