// RUN: stablehlo-alpa-opt %s -split-input-file -pass-pipeline='builtin.module(alpa-split-stacks{aliases=0:0})' | FileCheck %s

// A stack goes through a barrier in parts, together with what went through it beside the stack.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[W0:[^:]+]]: tensor<2x8xf32> {alpa.input = 0 : i64}, %[[W1:[^:]+]]: tensor<2x8xf32> {alpa.input = 0 : i64}, %[[X:[^:]+]]: tensor<2x8xf32> {alpa.input = 1 : i64}
// CHECK: %[[B:.+]]:3 = stablehlo.optimization_barrier %[[X]], %[[W0]], %[[W1]]
// CHECK-NOT: optimization_barrier
// CHECK: stablehlo.add %[[B]]#1, %[[B]]#0
// CHECK: stablehlo.add %[[B]]#2, %[[B]]#0
func.func @main(%w: tensor<4x8xf32>, %x: tensor<2x8xf32>) -> (tensor<4x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) {
  %0:2 = stablehlo.optimization_barrier %w, %x : tensor<4x8xf32>, tensor<2x8xf32>
  %1 = stablehlo.slice %0#0 [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("jit(f)/alpa_stack/split")
  %2 = stablehlo.slice %0#0 [2:4, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("jit(f)/alpa_stack/split")
  %3 = stablehlo.slice %w [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("jit(f)/alpa_stack/split")
  %4 = stablehlo.slice %w [2:4, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("jit(f)/alpa_stack/split")
  %5 = stablehlo.add %1, %0#1 : tensor<2x8xf32>
  %6 = stablehlo.add %2, %0#1 : tensor<2x8xf32>
  return %w, %5, %6 : tensor<4x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// The barrier of a layer: each part has its own, so that the layers that read it do not wait for one another.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[W0:[^:]+]]: tensor<2x8xf32> {alpa.input = 0 : i64}, %[[W1:[^:]+]]: tensor<2x8xf32> {alpa.input = 0 : i64}, %[[X:[^:]+]]: tensor<2x8xf32> {alpa.input = 1 : i64}
// CHECK-DAG: %[[BX:.+]] = stablehlo.optimization_barrier %[[X]] : tensor<2x8xf32>
// CHECK-DAG: %[[B0:.+]] = stablehlo.optimization_barrier %[[W0]] : tensor<2x8xf32>
// CHECK-DAG: %[[B1:.+]] = stablehlo.optimization_barrier %[[W1]] : tensor<2x8xf32>
// CHECK: stablehlo.add %[[B0]], %[[BX]]
// CHECK: stablehlo.add %[[B1]], %[[BX]]
func.func @main(%w: tensor<4x8xf32>, %x: tensor<2x8xf32>) -> (tensor<4x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>) {
  %0:2 = stablehlo.optimization_barrier %w, %x : tensor<4x8xf32>, tensor<2x8xf32> loc("jit(f)/alpa_layer_1/checkpoint")
  %1 = stablehlo.slice %0#0 [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("jit(f)/alpa_stack/split")
  %2 = stablehlo.slice %0#0 [2:4, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("jit(f)/alpa_stack/split")
  %3 = stablehlo.slice %w [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("jit(f)/alpa_stack/split")
  %4 = stablehlo.slice %w [2:4, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("jit(f)/alpa_stack/split")
  %5 = stablehlo.add %1, %0#1 : tensor<2x8xf32>
  %6 = stablehlo.add %2, %0#1 : tensor<2x8xf32>
  return %w, %5, %6 : tensor<4x8xf32>, tensor<2x8xf32>, tensor<2x8xf32>
}

// -----

// What is made of constants, the gradient of a stack that is not used, is put into the barrier in parts.

// CHECK-LABEL: func.func @main(
// CHECK-SAME: %[[W0:[^:]+]]: tensor<1x8xf32> {alpa.input = 0 : i64}, %[[W1:[^:]+]]: tensor<3x8xf32> {alpa.input = 0 : i64}, %[[X:[^:]+]]: tensor<8xf32>
// CHECK-DAG: %[[Z0:.+]] = stablehlo.constant dense<0.000000e+00> : tensor<1x8xf32>
// CHECK-DAG: %[[Z1:.+]] = stablehlo.constant dense<0.000000e+00> : tensor<3x8xf32>
// CHECK: %[[B:.+]]:3 = stablehlo.optimization_barrier %[[X]], %[[Z0]], %[[Z1]]
// CHECK: stablehlo.add %[[W0]], %[[B]]#1
// CHECK: stablehlo.add %[[W1]], %[[B]]#2
func.func @main(%w: tensor<4x8xf32>, %x: tensor<8xf32>) -> (tensor<4x8xf32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<4x8xf32>
  %0:2 = stablehlo.optimization_barrier %zero, %x : tensor<4x8xf32>, tensor<8xf32>
  %1 = stablehlo.slice %w [0:1, 0:8] : (tensor<4x8xf32>) -> tensor<1x8xf32> loc("jit(f)/alpa_stack/split")
  %2 = stablehlo.slice %w [1:4, 0:8] : (tensor<4x8xf32>) -> tensor<3x8xf32> loc("jit(f)/alpa_stack/split")
  %3 = stablehlo.add %w, %0#0 : tensor<4x8xf32>
  return %3, %0#1 : tensor<4x8xf32>, tensor<8xf32>
}
