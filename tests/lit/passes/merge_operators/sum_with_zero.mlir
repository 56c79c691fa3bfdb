// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-merge-operators | FileCheck %s

// Gradients that are added to zeros stay shares of one sum.
// CHECK-LABEL: func.func @main
func.func @main(%x: tensor<16x32xf32>, %w: tensor<32x64xf32>) -> tensor<16x64xf32> {
  %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x64xf32>
  // CHECK: %[[FIRST:.*]] = stablehlo.dot_general
  %1 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  %2 = stablehlo.add %0, %1 : tensor<16x64xf32>
  // CHECK: %[[SECOND:.*]] = stablehlo.dot_general
  %3 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  // CHECK-NEXT: %[[SUM:.*]] = stablehlo.add %[[FIRST]], %[[SECOND]] {alpa.role = "leader"}
  %4 = stablehlo.add %2, %3 : tensor<16x64xf32>
  // CHECK-NEXT: return %[[SUM]]
  return %4 : tensor<16x64xf32>
}

// -----

// A stage sends its input on in the forward phase, which the sum says.
// CHECK-LABEL: func.func @main
// CHECK: %[[SENT:.*]] = stablehlo.add
// CHECK: return %[[SENT]]
func.func @main(%x: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %0 = stablehlo.broadcast_in_dim %cst, dims = [] : (tensor<f32>) -> tensor<16x32xf32>
  %1 = stablehlo.add %0, %x {alpa.layer = 0 : i64, alpa.phase = 0 : i64} : tensor<16x32xf32>
  return %1 : tensor<16x32xf32>
}
