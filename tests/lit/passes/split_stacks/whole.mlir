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

// -----

// What is scattered to rows by their numbers in the whole stack is scattered there; what is
// scattered inside of the rows, in each part.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[W0:[^:]+]]: tensor<2x8xf32> {alpa.input = 0 : i64}
// CHECK-SAME: %[[W1:[^:]+]]: tensor<2x8xf32> {alpa.input = 0 : i64}
// CHECK: %[[WHOLE:.+]] = stablehlo.concatenate %[[W0]], %[[W1]]
// CHECK-DAG: "stablehlo.scatter"(%[[WHOLE]], {{.*}} inserted_window_dims = [0]
// CHECK-DAG: "stablehlo.scatter"(%[[W0]], {{.*}} inserted_window_dims = [1]
// CHECK-DAG: "stablehlo.scatter"(%[[W1]], {{.*}} inserted_window_dims = [1]
func.func @main(%w: tensor<4x8xf32>, %batch: tensor<1xf32>, %i: tensor<2x1xi32>, %u: tensor<2x8xf32>) -> (tensor<4x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = stablehlo.slice %w [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("alpa_stack")
  %1 = stablehlo.slice %w [2:4, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("alpa_stack")
  %2 = "stablehlo.scatter"(%w, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %sum = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<2x1xi32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  %one = stablehlo.constant dense<1.0> : tensor<4x2xf32>
  %3 = "stablehlo.scatter"(%w, %i, %one) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], inserted_window_dims = [1], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %sum = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<2x1xi32>, tensor<4x2xf32>) -> tensor<4x8xf32>
  return %w, %0, %1, %2, %3 : tensor<4x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>, tensor<4x8xf32>, tensor<4x8xf32>
}
