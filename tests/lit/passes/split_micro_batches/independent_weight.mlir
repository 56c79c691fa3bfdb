// RUN: stablehlo-alpa-opt %s --alpa-split-micro-batches="batch=1 micro-batches=4 independent=1" | FileCheck %s

// The mean weighted by a result: products with the weight are added up, in 32 bits at least, and so is the
// weight. What is the same for all micro-batches is handed on.

// CHECK: func.func @main(%[[W:.+]]: tensor<4xbf16>, %[[X:.+]]: tensor<4xbf16> {alpa.batch = 1 : i64})
// CHECK: %[[G:.+]] = stablehlo.multiply %[[W]], %[[X]]
// CHECK: %[[N:.+]] = stablehlo.reduce
// CHECK: %[[TOTAL:.+]] = alpa.accumulate %[[N]]
// CHECK: %[[WIDE:.+]] = stablehlo.convert %[[G]] : (tensor<4xbf16>) -> tensor<4xf32>
// CHECK: %[[SPREAD:.+]] = stablehlo.broadcast_in_dim %{{.+}}, dims = []
// CHECK: %[[PRODUCT:.+]] = stablehlo.multiply %[[WIDE]], %[[SPREAD]] : tensor<4xf32>
// CHECK: %[[SUM:.+]] = alpa.accumulate %[[PRODUCT]]
// CHECK: %[[MEAN:.+]] = stablehlo.divide %[[SUM]], %{{.+}} : tensor<4xf32>
// CHECK: %[[NARROW:.+]] = stablehlo.convert %[[MEAN]] : (tensor<4xf32>) -> tensor<4xbf16>
// CHECK: return %[[NARROW]], %[[TOTAL]], %[[W]]
func.func @main(%w: tensor<4xbf16>, %x: tensor<4xbf16>) -> (tensor<4xbf16>, tensor<i32>, tensor<4xbf16>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.multiply %w, %x : tensor<4xbf16>
  %1 = stablehlo.convert %x : (tensor<4xbf16>) -> tensor<4xi32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4xi32>, tensor<i32>) -> tensor<i32>
  %3:3 = stablehlo.optimization_barrier %0, %2, %w : tensor<4xbf16>, tensor<i32>, tensor<4xbf16> loc("jit(step)/alpa_gradients/optimization_barrier")
  return %3#0, %3#1, %3#2 : tensor<4xbf16>, tensor<i32>, tensor<4xbf16>
}
