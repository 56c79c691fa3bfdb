// RUN: stablehlo-alpa-opt %s --alpa-mark-layers=micro-batches=2 | FileCheck %s

// Each layer makes its own narrow copy of a parameter, in each phase: none is sent from layer to
// layer, or kept for the backward phase.

// CHECK: %[[F0:.+]] = stablehlo.convert %arg0 {alpa.layer = 0 : i64, alpa.phase = 0 : i64}
// CHECK: stablehlo.dot_general %arg1, %[[F0]]
// CHECK: %[[F1:.+]] = stablehlo.convert %arg0 {alpa.layer = 1 : i64, alpa.phase = 0 : i64}
// CHECK: %[[T1:.+]] = stablehlo.transpose %[[F1]], dims = [1, 0] {alpa.layer = 1 : i64, alpa.phase = 0 : i64}
// CHECK: stablehlo.dot_general %{{.+}}, %[[T1]]
// What is of a batch is made once.
// CHECK: %[[X:.+]] = stablehlo.convert %arg1 {alpa.layer = 0 : i64, alpa.phase = 0 : i64}
// CHECK: %[[B0:.+]] = stablehlo.convert %arg0 {alpa.layer = 0 : i64, alpa.phase = 1 : i64}
// CHECK: %[[WIDE:.+]] = stablehlo.convert %[[B0]] {alpa.layer = 0 : i64, alpa.phase = 1 : i64}
// CHECK: stablehlo.dot_general %[[X]], %[[WIDE]]
func.func @main(%w: tensor<4x4xf32>, %x: tensor<8x4xf16> {alpa.batch = 1 : i64}) -> tensor<8x4xf32> {
  %0 = stablehlo.convert %w : (tensor<4x4xf32>) -> tensor<4x4xf16> loc("jit(step)/jvp(alpa_layer_0)/convert")
  %t = stablehlo.transpose %0, dims = [1, 0] : (tensor<4x4xf16>) -> tensor<4x4xf16> loc("jit(step)/jvp(alpa_layer_0)/transpose")
  %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0] : (tensor<8x4xf16>, tensor<4x4xf16>) -> tensor<8x4xf16> loc("jit(step)/jvp(alpa_layer_0)/dot")
  %2 = stablehlo.dot_general %1, %t, contracting_dims = [1] x [0] : (tensor<8x4xf16>, tensor<4x4xf16>) -> tensor<8x4xf16> loc("jit(step)/jvp(alpa_layer_1)/dot")
  %3 = stablehlo.convert %x : (tensor<8x4xf16>) -> tensor<8x4xf32> loc("jit(step)/jvp(alpa_layer_0)/convert")
  %4 = stablehlo.convert %0 : (tensor<4x4xf16>) -> tensor<4x4xf32> loc("jit(step)/transpose(jvp(alpa_layer_0))/convert")
  %5 = stablehlo.convert %2 : (tensor<8x4xf16>) -> tensor<8x4xf32> loc("jit(step)/jvp(alpa_layer_1)/convert")
  %6 = stablehlo.dot_general %3, %4, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32> loc("jit(step)/transpose(jvp(alpa_layer_0))/dot")
  %7 = stablehlo.add %5, %6 : tensor<8x4xf32> loc("jit(step)/transpose(jvp(alpa_layer_0))/add")
  %8 = alpa.accumulate %7 : tensor<8x4xf32>
  return %8 : tensor<8x4xf32>
}
