// RUN: stablehlo-alpa-opt %s -split-input-file -pass-pipeline='builtin.module(alpa-split-stacks{aliases=0:0,1:1})' | FileCheck %s

// A stack, its moments and their next values are cut where the layers are.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[W0:[^:]+]]: tensor<2x8xf32> {alpa.input = 0 : i64}
// CHECK-SAME: %[[W1:[^:]+]]: tensor<2x8xf32> {alpa.input = 0 : i64}
// CHECK-SAME: %[[M0:[^:]+]]: tensor<2x8xf32> {alpa.input = 1 : i64}
// CHECK-SAME: %[[M1:[^:]+]]: tensor<2x8xf32> {alpa.input = 1 : i64}
// CHECK-SAME: %[[X:[^:]+]]: tensor<2x8xf32> {alpa.input = 2 : i64}
// CHECK-SAME: alpa.output = 0 : i64
// CHECK-SAME: alpa.output = 0 : i64
// CHECK-SAME: alpa.output = 1 : i64
// CHECK-SAME: alpa.output = 1 : i64
// CHECK-NOT: concatenate
// CHECK-NOT: stablehlo.slice
// CHECK-DAG: %[[G0:.*]] = stablehlo.add %[[W0]], %[[X]]
// CHECK-DAG: %[[G1:.*]] = stablehlo.add %[[W1]], %[[X]]
// CHECK-DAG: %[[N0:.*]] = stablehlo.add %[[M0]], %[[G0]]
// CHECK-DAG: %[[N1:.*]] = stablehlo.add %[[M1]], %[[G1]]
// CHECK-DAG: %[[P0:.*]] = stablehlo.subtract %[[W0]], %[[N0]]
// CHECK-DAG: %[[P1:.*]] = stablehlo.subtract %[[W1]], %[[N1]]
// CHECK: return %[[P0]], %[[P1]], %[[N0]], %[[N1]]
func.func @main(%w: tensor<4x8xf32>, %m: tensor<4x8xf32>, %x: tensor<2x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  %0 = stablehlo.slice %w [0:2, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("jit(f)/alpa_stack/split")
  %1 = stablehlo.slice %w [2:4, 0:8] : (tensor<4x8xf32>) -> tensor<2x8xf32> loc("jit(f)/alpa_stack/split")
  %2 = stablehlo.add %0, %x : tensor<2x8xf32>
  %3 = stablehlo.add %1, %x : tensor<2x8xf32>
  %4 = stablehlo.concatenate %2, %3, dim = 0 : (tensor<2x8xf32>, tensor<2x8xf32>) -> tensor<4x8xf32>
  %5 = stablehlo.add %m, %4 : tensor<4x8xf32>
  %6 = stablehlo.subtract %w, %5 : tensor<4x8xf32>
  return %6, %5 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Parts of unlike sizes, along dimension 1; what layers have made of it in turn, statistics for
// example, is cut as well. Arguments that nothing cuts stay.

// CHECK-LABEL: func.func @main
// CHECK-SAME: %[[W0:[^:]+]]: tensor<8x1xf32> {alpa.input = 0 : i64}
// CHECK-SAME: %[[W1:[^:]+]]: tensor<8x3xf32> {alpa.input = 0 : i64}
// CHECK-SAME: %[[V:[^:]+]]: tensor<4x8xf32> {alpa.input = 1 : i64}
// CHECK: return %[[W0]], %[[W1]], %[[V]]
func.func @main(%w: tensor<8x4xf32>, %v: tensor<4x8xf32>) -> (tensor<8x4xf32>, tensor<4x8xf32>) {
  %0 = stablehlo.slice %w [0:8, 0:1] : (tensor<8x4xf32>) -> tensor<8x1xf32> loc("alpa_stack")
  %1 = stablehlo.slice %w [0:8, 1:4] : (tensor<8x4xf32>) -> tensor<8x3xf32> loc("alpa_stack")
  %2 = stablehlo.concatenate %0, %1, dim = 1 : (tensor<8x1xf32>, tensor<8x3xf32>) -> tensor<8x4xf32> loc("alpa_stack")
  return %2, %v : tensor<8x4xf32>, tensor<4x8xf32>
}
