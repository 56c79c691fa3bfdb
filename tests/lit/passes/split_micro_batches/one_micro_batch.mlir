// RUN: stablehlo-alpa-opt %s --alpa-split-micro-batches | FileCheck %s

// One micro-batch is the step itself: there is no mesh, and joins stand where gradients were marked
// and in front of results of the batch.

// CHECK-NOT: alpa.mesh
// CHECK: func.func @main(%[[W:.+]]: tensor<8x4xf32>{{.*}}, %[[X:.+]]: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>)
// CHECK: %[[Y:.+]] = stablehlo.multiply %[[X]], %[[W]]
// CHECK-NOT: optimization_barrier
// CHECK: %[[G:.+]] = alpa.accumulate %[[Y]]
// CHECK: %[[NEW:.+]] = stablehlo.subtract %[[W]], %[[G]]
// CHECK: %[[OUT:.+]] = alpa.accumulate
// CHECK: return %[[NEW]], %[[OUT]]
func.func @main(%w: tensor<8x4xf32> {alpa.alias = 0 : i64}, %x: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>) {
  %0 = stablehlo.multiply %x, %w : tensor<8x4xf32>
  %1 = stablehlo.tanh %0 : tensor<8x4xf32>
  %2 = stablehlo.optimization_barrier %0 : tensor<8x4xf32> loc("jit(step)/alpa_gradients/optimization_barrier")
  %3 = stablehlo.subtract %w, %2 : tensor<8x4xf32>
  return %3, %1 : tensor<8x4xf32>, tensor<8x4xf32>
}
