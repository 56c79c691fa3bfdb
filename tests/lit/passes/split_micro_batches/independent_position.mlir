// RUN: stablehlo-alpa-opt %s --alpa-split-micro-batches="batch=0 micro-batches=4 independent=sum" | FileCheck %s

// Where the function asks for the number of its micro-batch, an argument is.

// CHECK: func.func @main(%[[X:.+]]: tensor<4xui32> {alpa.batch = 0 : i64}, %[[M:.+]]: tensor<ui32> {alpa.micro_batch = 0 : i64})
// CHECK-NOT: custom_call
// CHECK: %[[SPREAD:.+]] = stablehlo.broadcast_in_dim %[[M]]
// CHECK: %[[SUM:.+]] = stablehlo.add %[[X]], %[[SPREAD]]
// CHECK: %[[JOINED:.+]] = alpa.accumulate %[[SUM]]
// CHECK: return %[[JOINED]]
func.func @main(%x: tensor<4xui32>) -> tensor<4xui32> {
  %0 = stablehlo.custom_call @alpa.micro_batch() : () -> tensor<ui32>
  %1 = stablehlo.broadcast_in_dim %0, dims = [] : (tensor<ui32>) -> tensor<4xui32>
  %2 = stablehlo.add %x, %1 : tensor<4xui32>
  %3 = stablehlo.optimization_barrier %2 : tensor<4xui32> loc("jit(step)/alpa_gradients/optimization_barrier")
  return %3 : tensor<4xui32>
}
