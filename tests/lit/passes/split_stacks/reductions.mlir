// RUN: stablehlo-alpa-opt %s -split-input-file -pass-pipeline='builtin.module(alpa-split-stacks)' | FileCheck %s

// A norm of the whole is the sum of those of the parts.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[W0:[^:]+]]: tensor<2x8xf32>
// CHECK-SAME: %[[W1:[^:]+]]: tensor<2x8xf32>
// CHECK-DAG: %[[S0:.*]] = stablehlo.multiply %[[W0]], %[[W0]]
// CHECK-DAG: %[[S1:.*]] = stablehlo.multiply %[[W1]], %[[W1]]
// CHECK-DAG: %[[R0:.*]] = stablehlo.reduce(%[[S0]] init
// CHECK-DAG: %[[R1:.*]] = stablehlo.reduce(%[[S1]] init
// CHECK: %[[SUM:.*]] = stablehlo.add %[[R0]], %[[R1]] : tensor<f32>
// CHECK: return %{{.*}}, %{{.*}}, %[[SUM]]
func.func @main(%w: tensor<4x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.slice %w [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("alpa_stack")
  %1 = stablehlo.slice %w [2:4, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("alpa_stack")
  %2 = stablehlo.multiply %w, %w : tensor<4x8xf32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
  return %0, %1, %3 : tensor<2x8xf32>, tensor<2x8xf32>, tensor<f32>
}

// -----

// Of which it cannot be done part by part reads the parts put together: what starts from one would
// add it twice.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[W0:[^:]+]]: tensor<2x8xf32>
// CHECK-SAME: %[[W1:[^:]+]]: tensor<2x8xf32>
// CHECK: %[[WHOLE:.*]] = stablehlo.concatenate %[[W0]], %[[W1]], dim = 0
// CHECK: stablehlo.reduce(%[[WHOLE]] init
func.func @main(%w: tensor<4x8xf32>) -> (tensor<2x8xf32>, tensor<2x8xf32>, tensor<f32>) {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.slice %w [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("alpa_stack")
  %1 = stablehlo.slice %w [2:4, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("alpa_stack")
  %2 = stablehlo.reduce(%w init: %one) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<f32>
  return %0, %1, %2 : tensor<2x8xf32>, tensor<2x8xf32>, tensor<f32>
}
