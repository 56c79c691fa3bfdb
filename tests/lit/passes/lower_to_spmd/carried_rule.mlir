// RUN: stablehlo-alpa-opt %s -allow-unregistered-dialect -alpa-merge-operators -alpa-plan-pipeline="mesh=x:2 solution=2,1,2,3,0" -alpa-spmd-pipeline | FileCheck %s

// Kernels of unknown dialects and custom calls are split by the rules that they carry: the sum that
// the first leaves goes through the second, which is linear, and is reduced behind it.

// CHECK-NOT: alpa
// CHECK: func.func @main(%[[A:.*]]: tensor<16x4xf32>, %[[B:.*]]: tensor<4x4xf32>) -> tensor<16x4xf32>
// CHECK: %[[P:.*]] = "other.matmul"(%[[A]], %[[B]]) : (tensor<16x4xf32>, tensor<4x4xf32>) -> tensor<16x4xf32>
// CHECK: %[[T:.*]] = stablehlo.custom_call @twice(%[[P]]) : (tensor<16x4xf32>) -> tensor<16x4xf32>
// CHECK: "stablehlo.all_reduce"(%[[T]])
// CHECK-NOT: alpa
func.func @main(%a: tensor<16x8xf32>, %b: tensor<8x4xf32>) -> tensor<16x4xf32> {
  %0 = "other.matmul"(%a, %b) {alpa.rule = #alpa.rule<([i, k], [k, j]) -> ([i, j]) {i, k=sum, j}>} : (tensor<16x8xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
  %1 = stablehlo.custom_call @twice(%0) {alpa.rule = #alpa.rule<([i, j]) -> ([i, j]) {} linear(0)>} : (tensor<16x4xf32>) -> tensor<16x4xf32>
  return %1 : tensor<16x4xf32>
}
