// RUN: stablehlo-alpa-opt %s -split-input-file -pass-pipeline='builtin.module(alpa-split-stacks{aliases=0:0})' | FileCheck %s

// A stack that layers take in groups is cut between groups; flattened, it is cut as well.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[W0:[^:]+]]: tensor<2x8xf32> {alpa.input = 0 : i64}
// CHECK-SAME: %[[W1:[^:]+]]: tensor<4x8xf32> {alpa.input = 0 : i64}
// CHECK-NOT: concatenate
// CHECK-DAG: %[[F0:.+]] = stablehlo.reshape %[[W0]] : (tensor<2x8xf32>) -> tensor<16xf32>
// CHECK-DAG: %[[F1:.+]] = stablehlo.reshape %[[W1]] : (tensor<4x8xf32>) -> tensor<32xf32>
// CHECK-DAG: %[[D0:.+]] = stablehlo.dot_general %[[F0]], %[[F0]]
// CHECK-DAG: %[[D1:.+]] = stablehlo.dot_general %[[F1]], %[[F1]]
// CHECK-DAG: %[[NORM:.+]] = stablehlo.add %[[D0]], %[[D1]]
// CHECK: return %[[W0]], %[[W1]], %{{.+}}, %{{.+}}, %[[NORM]]
func.func @main(%w: tensor<6x8xf32>) -> (tensor<6x8xf32>, tensor<1x2x8xf32>, tensor<2x2x8xf32>, tensor<f32>) {
  %0 = stablehlo.reshape %w : (tensor<6x8xf32>) -> tensor<3x2x8xf32>
  %1 = stablehlo.slice %0 [0:1, 0:2, 0:8] : (tensor<3x2x8xf32>) -> tensor<1x2x8xf32> loc("alpa_stack")
  %2 = stablehlo.slice %0 [1:3, 0:2, 0:8] : (tensor<3x2x8xf32>) -> tensor<2x2x8xf32> loc("alpa_stack")
  %3 = stablehlo.reshape %w : (tensor<6x8xf32>) -> tensor<48xf32>
  %4 = stablehlo.dot_general %3, %3, contracting_dims = [0] x [0] : (tensor<48xf32>, tensor<48xf32>) -> tensor<f32>
  return %w, %1, %2, %4 : tensor<6x8xf32>, tensor<1x2x8xf32>, tensor<2x2x8xf32>, tensor<f32>
}

// -----

// Parts that are no rows in another shape are put together for it.

// CHECK-LABEL: func.func @main
// CHECK: %[[WHOLE:.+]] = stablehlo.concatenate %arg0, %arg1
// CHECK: stablehlo.reshape %[[WHOLE]] : (tensor<4x8xf32>) -> tensor<2x2x8xf32>
func.func @main(%w: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<1x8xf32>, tensor<3x8xf32>, tensor<2x2x8xf32>) {
  %0 = stablehlo.slice %w [0:1, 0:8] : (tensor<4x8xf32>) -> tensor<1x8xf32> loc("alpa_stack")
  %1 = stablehlo.slice %w [1:4, 0:8] : (tensor<4x8xf32>) -> tensor<3x8xf32> loc("alpa_stack")
  %2 = stablehlo.reshape %w : (tensor<4x8xf32>) -> tensor<2x2x8xf32>
  return %w, %0, %1, %2 : tensor<4x8xf32>, tensor<1x8xf32>, tensor<3x8xf32>, tensor<2x2x8xf32>
}
