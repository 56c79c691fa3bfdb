// RUN: stablehlo-alpa-opt %s --alpa-mark-layers=micro-batches=2 | FileCheck %s

// A value of the forward pass that is the same for all micro-batches, and used behind the joins, is
// made again there.

// CHECK: %[[W2:.+]] = stablehlo.multiply %arg0, %arg0 {alpa.layer = 0 : i64, alpa.phase = 0 : i64}
// CHECK: %[[SUM:.+]] = alpa.accumulate
// CHECK: %[[AGAIN:.+]] = stablehlo.multiply %arg0, %arg0 {alpa.phase = 2 : i64}
// CHECK: %[[NEW:.+]] = stablehlo.add %[[AGAIN]], %[[SUM]] {alpa.phase = 2 : i64}
// CHECK: return %[[NEW]], %[[AGAIN]]
func.func @main(%w: tensor<4xf32>, %x: tensor<4xf32> {alpa.batch = 1 : i64}) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.multiply %w, %w : tensor<4xf32> loc("jit(step)/jvp(alpa_layer_0)/mul")
  %1 = stablehlo.multiply %0, %x : tensor<4xf32> loc("jit(step)/transpose(jvp(alpa_layer_0))/mul")
  %2 = alpa.accumulate %1 : tensor<4xf32>
  %3 = stablehlo.add %0, %2 : tensor<4xf32>
  return %3, %0 : tensor<4xf32>, tensor<4xf32>
}
