// RUN: stablehlo-alpa-opt %s --alpa-mark-layers=micro-batches=2 | FileCheck %s

// A parameter goes through the barrier of a layer that is computed again beside a value of one
// micro-batch, and is none: its penalty runs once per step, and waits for no micro-batch.

// CHECK: stablehlo.optimization_barrier {alpa.layer = 0 : i64, alpa.phase = 1 : i64} %arg0, %arg1
// CHECK: %[[SUM:.+]] = alpa.accumulate
// CHECK: %[[PENALTY:.+]] = stablehlo.add %arg0, %arg0 {alpa.phase = 2 : i64}
// CHECK: stablehlo.add %[[SUM]], %[[PENALTY]] {alpa.phase = 2 : i64}
func.func @main(%w: tensor<4xf32>, %x: tensor<4xf32> {alpa.batch = 1 : i64}) -> tensor<4xf32> {
  %0:2 = stablehlo.optimization_barrier %w, %x : tensor<4xf32>, tensor<4xf32> loc("jit(step)/transpose(jvp(alpa_layer_0))/remat")
  %1 = stablehlo.multiply %0#0, %0#1 : tensor<4xf32> loc("jit(step)/transpose(jvp(alpa_layer_0))/mul")
  %2 = alpa.accumulate %1 : tensor<4xf32>
  %3 = stablehlo.add %0#0, %0#0 : tensor<4xf32>
  %4 = stablehlo.add %2, %3 : tensor<4xf32>
  return %4 : tensor<4xf32>
}
