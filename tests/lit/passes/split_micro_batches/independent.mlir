// RUN: stablehlo-alpa-opt %s --alpa-split-micro-batches="batch=1 micro-batches=4 independent=mean" | FileCheck %s --check-prefixes=CHECK,MEAN
// RUN: stablehlo-alpa-opt %s --alpa-split-micro-batches="batch=1 micro-batches=4 independent=sum" | FileCheck %s --check-prefixes=CHECK,SUM

// The function of one micro-batch: what leaves the differentiated function is added up, and divided
// by their number where a mean is asked for. What is the same for all is handed on, what nothing uses
// is gone.

// CHECK: func.func @main(%[[W:.+]]: tensor<4xf32>, %[[X:.+]]: tensor<4xf32> {alpa.batch = 1 : i64})
// CHECK: %[[G:.+]] = stablehlo.multiply %[[W]], %[[X]]
// CHECK-NOT: stablehlo.tanh
// CHECK: %[[SUM:.+]] = alpa.accumulate %[[G]]
// MEAN: %[[FOUR:.+]] = stablehlo.constant dense<4.000000e+00>
// MEAN: %[[MEAN:.+]] = stablehlo.divide %[[SUM]], %[[FOUR]]
// MEAN: return %[[MEAN]], %[[W]]
// SUM-NOT: stablehlo.divide
// SUM: return %[[SUM]], %[[W]]
func.func @main(%w: tensor<4xf32>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.multiply %w, %x : tensor<4xf32>
  %unused = stablehlo.tanh %0 : tensor<4xf32>
  %also = stablehlo.negate %unused : tensor<4xf32>
  %1:2 = stablehlo.optimization_barrier %0, %w : tensor<4xf32>, tensor<4xf32> loc("jit(step)/alpa_gradients/optimization_barrier")
  return %1#0, %1#1 : tensor<4xf32>, tensor<4xf32>
}
