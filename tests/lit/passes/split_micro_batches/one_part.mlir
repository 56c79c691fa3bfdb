// RUN: stablehlo-alpa-opt %s "--alpa-split-micro-batches=independent=mean batch=1" | FileCheck %s

// All of a part of the batch, of which a step has several: what is made of the argument is not
// made once per step. The loss that nothing uses is not made at all.

// CHECK: func.func @main(%[[W:.+]]: tensor<8x4xf32>{{.*}}, %[[X:.+]]: tensor<8x4xf32> {alpa.batch = 1 : i64})
// CHECK: %[[Y:.+]] = stablehlo.multiply %[[X]], %[[W]]
// CHECK-NOT: stablehlo.tanh
// CHECK: %[[G:.+]] = alpa.accumulate %[[Y]]
// CHECK: %[[NEW:.+]] = stablehlo.subtract %[[W]], %[[G]]
func.func @main(%w: tensor<8x4xf32> {alpa.alias = 0 : i64}, %x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.multiply %x, %w : tensor<8x4xf32>
  %loss = stablehlo.tanh %0 : tensor<8x4xf32>
  %2:2 = stablehlo.optimization_barrier %0, %loss : tensor<8x4xf32>, tensor<8x4xf32> loc("jit(step)/alpa_gradients/optimization_barrier")
  %3 = stablehlo.subtract %w, %2#0 : tensor<8x4xf32>
  return %3 : tensor<8x4xf32>
}
