// RUN: stablehlo-alpa-opt %s -alpa-merge-operators | FileCheck %s

// Two uses of a partial sum: it is resolved once.
func.func @main(%x: tensor<16x32xf32>, %w: tensor<32x64xf32>) -> (tensor<16x64xf32>, tensor<16x64xf32>) {
  // CHECK: %[[DOT:.*]] = stablehlo.dot_general
  // CHECK: %[[SUM:.*]] = alpa.resolve %[[DOT]]
  // CHECK-NOT: alpa.resolve
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  // CHECK: stablehlo.tanh %[[SUM]]
  %1 = stablehlo.tanh %0 : tensor<16x64xf32>
  // CHECK: stablehlo.negate %[[SUM]]
  %2 = stablehlo.negate %0 : tensor<16x64xf32>
  return %1, %2 : tensor<16x64xf32>, tensor<16x64xf32>
}
