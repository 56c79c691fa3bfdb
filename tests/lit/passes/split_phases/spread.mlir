// RUN: stablehlo-alpa-opt %s --alpa-split-phases | FileCheck %s

// What spreads a number is computed again where it is read: nothing holds it between layers.

// CHECK-LABEL: module @backward
// CHECK: %[[PLACES:.+]] = stablehlo.broadcast_in_dim
// CHECK: %[[DX:.+]] = stablehlo.multiply %{{.+}}, %[[PLACES]]
// CHECK: %[[TAKEN:.+]] = stablehlo.optimization_barrier {alpa.barrier = 8 : i64, {{.*}}} %[[DX]] :
// CHECK-NOT: optimization_barrier {{.*}} %[[PLACES]]
// CHECK: stablehlo.multiply %[[TAKEN]], %[[PLACES]]
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%w: tensor<4x4xf32> {alpa.input = 0 : i64, alpa.sharding = #alpa.sharding<RR>}, %v: tensor<4x4xf32> {alpa.input = 1 : i64, alpa.sharding = #alpa.sharding<RR>}, %x: tensor<8x4xf32> {alpa.transfer = 0 : i64, alpa.sharding = #alpa.sharding<S0R>}, %c: tensor<8x4xf32> {alpa.transfer = 1 : i64, alpa.sharding = #alpa.sharding<S0R>}, %n: tensor<f32> {alpa.transfer = 3 : i64, alpa.sharding = #alpa.sharding<>}) -> (tensor<4x4xf32> {alpa.output = 0 : i64, alpa.sharding = #alpa.sharding<RR>}, tensor<4x4xf32> {alpa.output = 1 : i64, alpa.sharding = #alpa.sharding<RR>}, tensor<8x4xf32> {alpa.transfer = 2 : i64, alpa.sharding = #alpa.sharding<S0R>}) attributes {alpa.micro_batches = 2 : i64} {
    %0 = "stablehlo.optimization_barrier"(%c) {alpa.barrier = 7 : i64, alpa.layer = 1 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<8x4xf32>) -> tensor<8x4xf32>
    %places = stablehlo.broadcast_in_dim %n, dims = [] {alpa.layer = 1 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<f32>) -> tensor<8x4xf32>
    %dx1 = stablehlo.multiply %0, %places {alpa.layer = 1 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8x4xf32>
    %dw1 = stablehlo.dot_general %x, %0, contracting_dims = [0] x [0] {alpa.layer = 1 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<c=[0]>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    %s1 = alpa.accumulate %dw1 {alpa.layer = 1 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<RRP0>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<linear(0)=[0]>} : tensor<4x4xf32>
    %dw0 = stablehlo.dot_general %x, %dx1, contracting_dims = [0] x [0] {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<c=[0]>} : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
    %dx0 = stablehlo.multiply %dx1, %places {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8x4xf32>
    %s0 = alpa.accumulate %dw0 {alpa.layer = 0 : i64, alpa.phase = 1 : i64, alpa.operands = [#alpa.sharding<RRP0>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<linear(0)=[0]>} : tensor<4x4xf32>
    %r1 = alpa.reshard %s1 from <RRP0> to <RR> : tensor<4x4xf32>
    %r0 = alpa.reshard %s0 from <RRP0> to <RR> : tensor<4x4xf32>
    %w1 = stablehlo.subtract %w, %r1 {alpa.phase = 2 : i64, alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : tensor<4x4xf32>
    %v1 = stablehlo.subtract %v, %r0 {alpa.phase = 2 : i64, alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : tensor<4x4xf32>
    "func.return"(%w1, %v1, %dx0) {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>, #alpa.sharding<S0R>], alpa.results = []} : (tensor<4x4xf32>, tensor<4x4xf32>, tensor<8x4xf32>) -> ()
  }
}
