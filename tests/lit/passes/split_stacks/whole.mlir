// RUN: stablehlo-alpa-opt %s -split-input-file -pass-pipeline='builtin.module(alpa-split-stacks{aliases=0:0 whole=1})' | FileCheck %s

// What nobody may cut is sliced for the layers.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[W:[^:]+]]: tensor<4x8xf32> {alpa.input = 0 : i64}
// CHECK-SAME: %[[BATCH:[^:]+]]: tensor<4x8xf32> {alpa.input = 1 : i64}
// CHECK-DAG: stablehlo.slice %[[BATCH]] [0:2, 0:8]
// CHECK-DAG: stablehlo.slice %[[BATCH]] [2:4, 0:8]
func.func @main(%w: tensor<4x8xf32>, %batch: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) {
  %0 = stablehlo.slice %batch [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("alpa_stack")
  %1 = stablehlo.slice %batch [2:4, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("alpa_stack")
  return %w, %0, %1 : tensor<4x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// An argument whose next value is not cut stays whole.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[W:[^:]+]]: tensor<4x8xf32> {alpa.input = 0 : i64}
// CHECK-DAG: stablehlo.slice %[[W]] [0:2, 0:8]
// CHECK-DAG: stablehlo.slice %[[W]] [2:4, 0:8]
func.func @main(%w: tensor<4x8xf32>, %next: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) {
  %0 = stablehlo.slice %w [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("alpa_stack")
  %1 = stablehlo.slice %w [2:4, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("alpa_stack")
  return %next, %0, %1 : tensor<4x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// Slices that leave rows out cut nothing, nor do those that the front end has not made.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %{{[^:]+}}: tensor<4x8xf32> {alpa.input = 0 : i64}
// CHECK-SAME: %{{[^:]+}}: tensor<4x8xf32> {alpa.input = 1 : i64}
func.func @main(%w: tensor<4x8xf32>, %v: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<2x8xf32>, tensor<1x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) {
  %0 = stablehlo.slice %w [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("alpa_stack")
  %1 = stablehlo.slice %w [3:4, 0:8] : (tensor<4x8xf32>) -> tensor<1x8xf32> loc("alpa_stack")
  %2 = stablehlo.slice %v [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32>
  %3 = stablehlo.slice %v [2:4, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32>
  return %w, %0, %1, %2, %3 : tensor<4x8xf32>, tensor<2x8xf32>, tensor<1x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
}
