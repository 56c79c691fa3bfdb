// RUN: stablehlo-alpa-opt %s -alpa-merge-operators | FileCheck %s

// The gradient of a bias, as JAX writes it: a sum over the batch, and one over dimensions of one.
// Devices add up their shares over the micro-batches, and reduce them once.

// CHECK: stablehlo.reduce
// CHECK-NOT: alpa.resolve
// CHECK: stablehlo.reshape
// CHECK-NOT: alpa.resolve
// CHECK: stablehlo.reduce
// CHECK-NOT: alpa.resolve
// CHECK: alpa.accumulate
func.func @main(%x: tensor<64x4096xf32>) -> tensor<4096xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%x init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<64x4096xf32>, tensor<f32>) -> tensor<4096xf32>
  %1 = stablehlo.reshape %0 : (tensor<4096xf32>) -> tensor<1x4096xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<1x4096xf32>, tensor<f32>) -> tensor<4096xf32>
  %3 = "alpa.accumulate"(%2) : (tensor<4096xf32>) -> tensor<4096xf32>
  return %3 : tensor<4096xf32>
}
