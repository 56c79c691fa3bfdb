// RUN: stablehlo-alpa-opt %s -split-input-file -pass-pipeline='builtin.module(alpa-split-stacks{aliases=0:0})' | FileCheck %s

// An update that is left out where a gradient is not finite: a branch per part, and one for what is
// no stack. Norms in a branch are put together of parts there.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[W0:[^:]+]]: tensor<1x8xf32> {alpa.input = 0 : i64}
// CHECK-SAME: %[[W1:[^:]+]]: tensor<3x8xf32> {alpa.input = 0 : i64}
// CHECK-NOT: concatenate
// CHECK: %[[N0:.+]] = "stablehlo.case"(%[[I:.+]]) ({
// CHECK: stablehlo.return %[[W0]]
// CHECK: stablehlo.subtract %[[W0]]
// CHECK: tensor<i32>) -> tensor<1x8xf32>
// CHECK: %[[N1:.+]] = "stablehlo.case"(%[[I]]) ({
// CHECK: stablehlo.return %[[W1]]
// CHECK: stablehlo.subtract %[[W1]]
// CHECK: tensor<i32>) -> tensor<3x8xf32>
// CHECK: %[[NORM:.+]] = "stablehlo.case"(%[[I]]) ({
// CHECK: tensor<i32>) -> tensor<8xf32>
// CHECK-NOT: concatenate
// CHECK: return %[[N0]], %[[N1]], %[[NORM]]
func.func @main(%w: tensor<4x8xf32>, %i: tensor<i32>) -> (tensor<4x8xf32>, tensor<8xf32>) {
  %a = stablehlo.slice %w [0:1, 0:8] : (tensor<4x8xf32>) -> tensor<1x8xf32> loc("alpa_stack")
  %b = stablehlo.slice %w [1:4, 0:8] : (tensor<4x8xf32>) -> tensor<3x8xf32> loc("alpa_stack")
  %g = stablehlo.concatenate %a, %b, dim = 0 : (tensor<1x8xf32>, tensor<3x8xf32>) -> tensor<4x8xf32> loc("alpa_stack")
  %0:2 = "stablehlo.case"(%i) ({
    %zero = stablehlo.constant dense<0.0> : tensor<8xf32>
    stablehlo.return %w, %zero : tensor<4x8xf32>, tensor<8xf32>
  }, {
    %none = stablehlo.constant dense<0.0> : tensor<f32>
    %norm = stablehlo.reduce(%g init: %none) applies stablehlo.add across dimensions = [0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
    %all = stablehlo.broadcast_in_dim %norm, dims = [1] : (tensor<8xf32>) -> tensor<4x8xf32>
    %next = stablehlo.subtract %w, %all : tensor<4x8xf32>
    stablehlo.return %next, %norm : tensor<4x8xf32>, tensor<8xf32>
  }) : (tensor<i32>) -> (tensor<4x8xf32>, tensor<8xf32>)
  return %0#0, %0#1 : tensor<4x8xf32>, tensor<8xf32>
}

// -----

// What a branch asks of the whole stack is sliced behind it; in loops everything is whole.

// CHECK-LABEL: func.func @main
// CHECK: %[[WHOLE:.+]] = stablehlo.concatenate %arg0, %arg1
// CHECK: "stablehlo.case"
// CHECK: stablehlo.reverse %[[WHOLE]], dims = [0]
// CHECK: stablehlo.slice {{.+}} [0:1, 0:8]
// CHECK: tensor<i32>) -> tensor<1x8xf32>
func.func @main(%w: tensor<4x8xf32>, %i: tensor<i32>) -> tensor<4x8xf32> {
  %a = stablehlo.slice %w [0:1, 0:8] : (tensor<4x8xf32>) -> tensor<1x8xf32> loc("alpa_stack")
  %b = stablehlo.slice %w [1:4, 0:8] : (tensor<4x8xf32>) -> tensor<3x8xf32> loc("alpa_stack")
  %0 = "stablehlo.case"(%i) ({
    stablehlo.return %w : tensor<4x8xf32>
  }, {
    %last = stablehlo.reverse %w, dims = [0] : tensor<4x8xf32>
    stablehlo.return %last : tensor<4x8xf32>
  }) : (tensor<i32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
