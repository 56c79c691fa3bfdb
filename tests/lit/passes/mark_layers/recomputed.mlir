// RUN: stablehlo-alpa-opt %s --alpa-mark-layers="batch=1 micro-batches=2" | FileCheck %s

// A value of the forward pass that is the same for all micro-batches, and used after the gradients,
// is made again there; an auxiliary output that is the same is handed on.

// CHECK: %[[W2:.+]] = stablehlo.multiply %arg0, %arg0 {alpa.layer = 0 : i64, alpa.phase = 0 : i64}
// CHECK: %[[SUM:.+]] = alpa.accumulate
// CHECK: %[[AGAIN:.+]] = stablehlo.multiply %arg0, %arg0 {alpa.phase = 2 : i64}
// CHECK: %[[NEW:.+]] = stablehlo.add %[[AGAIN]], %{{.+}} {alpa.phase = 2 : i64}
// CHECK: return %[[NEW]], %[[AGAIN]]
func.func @main(%w: tensor<4xf32>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.multiply %w, %w : tensor<4xf32> loc("jit(step)/jvp(alpa_layer_0)/mul")
  %1 = stablehlo.multiply %0, %x : tensor<4xf32> loc("jit(step)/transpose(jvp(alpa_layer_0))/mul")
  %2:2 = stablehlo.optimization_barrier %1, %0 : tensor<4xf32>, tensor<4xf32> loc("jit(step)/alpa_gradients/optimization_barrier")
  %3 = stablehlo.add %0, %2#0 : tensor<4xf32>
  return %3, %2#1 : tensor<4xf32>, tensor<4xf32>
}
