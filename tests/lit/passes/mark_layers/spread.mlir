// RUN: stablehlo-alpa-opt %s --alpa-mark-layers=micro-batches=2 | FileCheck %s

// What spreads the number of a micro-batch over a tensor is made again by each layer and phase: a tensor of the size of an
// activation is neither sent from layer to layer nor kept for the backward phase. The number itself is.

// CHECK: %[[N:.+]] = stablehlo.multiply %arg0, %{{.+}} {alpa.layer = 0 : i64, alpa.phase = 0 : i64}
// CHECK: %[[S0:.+]] = stablehlo.broadcast_in_dim %[[N]], dims = [] {alpa.layer = 0 : i64, alpa.phase = 0 : i64}
// CHECK: %[[P0:.+]] = stablehlo.add %{{.+}}, %[[S0]] {alpa.layer = 0 : i64, alpa.phase = 0 : i64}
// CHECK: %[[X0:.+]] = stablehlo.multiply %arg1, %[[P0]] {alpa.layer = 0 : i64, alpa.phase = 0 : i64}
// CHECK: %[[S1:.+]] = stablehlo.broadcast_in_dim %[[N]], dims = [] {alpa.layer = 1 : i64, alpa.phase = 0 : i64}
// CHECK: %[[P1:.+]] = stablehlo.add %{{.+}}, %[[S1]] {alpa.layer = 1 : i64, alpa.phase = 0 : i64}
// CHECK: stablehlo.multiply %[[X0]], %[[P1]] {alpa.layer = 1 : i64, alpa.phase = 0 : i64}
// It goes around the barrier, in front of which it would have to lie in memory.
// CHECK: %{{.+}}:2 = stablehlo.optimization_barrier {alpa.layer = 0 : i64, alpa.phase = 1 : i64} %{{.+}}, %arg1 :
// CHECK: %[[SB:.+]] = stablehlo.broadcast_in_dim %[[N]], dims = [] {alpa.layer = 0 : i64, alpa.phase = 1 : i64}
// CHECK: %[[PB:.+]] = stablehlo.add %{{.+}}, %[[SB]] {alpa.layer = 0 : i64, alpa.phase = 1 : i64}
// CHECK: stablehlo.multiply %{{.+}}, %[[PB]] {alpa.layer = 0 : i64, alpa.phase = 1 : i64}
func.func @main(%number: tensor<f32> {alpa.micro_batch = 0 : i64}, %x: tensor<8x64xf32> {alpa.batch = 1 : i64}) -> tensor<8x64xf32> {
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %0 = stablehlo.multiply %number, %two : tensor<f32> loc("jit(step)/jvp(alpa_layer_0)/mul")
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<f32>) -> tensor<8x64xf32> loc("jit(step)/jvp(alpa_layer_0)/broadcast")
  %2 = stablehlo.iota dim = 0 : tensor<8x64xf32>
  %3 = stablehlo.add %2, %1 : tensor<8x64xf32> loc("jit(step)/jvp(alpa_layer_0)/add")
  %4 = stablehlo.multiply %x, %3 : tensor<8x64xf32> loc("jit(step)/jvp(alpa_layer_0)/mul")
  %5 = stablehlo.multiply %4, %3 : tensor<8x64xf32> loc("jit(step)/jvp(alpa_layer_1)/mul")
  %b:3 = stablehlo.optimization_barrier %5, %3, %x : tensor<8x64xf32>, tensor<8x64xf32>, tensor<8x64xf32> loc("jit(step)/transpose(jvp(alpa_layer_0))/barrier")
  %6 = stablehlo.multiply %b#0, %b#1 : tensor<8x64xf32> loc("jit(step)/transpose(jvp(alpa_layer_0))/mul")
  %8 = stablehlo.add %6, %b#2 : tensor<8x64xf32> loc("jit(step)/transpose(jvp(alpa_layer_0))/add")
  %7 = alpa.accumulate %8 : tensor<8x64xf32>
  return %7 : tensor<8x64xf32>
}
