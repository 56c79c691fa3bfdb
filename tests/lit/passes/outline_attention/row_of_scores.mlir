// RUN: stablehlo-alpa-opt %s -alpa-outline-attention=keys=8 -verify-diagnostics | FileCheck %s

// The largest score of a row needs all scores, made once: what asks whether a score is the largest gets a product that was made
// again otherwise, and that rounds otherwise.

// CHECK-LABEL: func.func @main
// CHECK-NOT: alpa.attention
func.func @main(%q: tensor<8x4xf32>, %k: tensor<8x4xf32>, %v: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %s = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<8x8xf32>
  %largest = stablehlo.reduce(%s init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %spread = stablehlo.broadcast_in_dim %largest, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>
  %x = stablehlo.divide %s, %spread : tensor<8x8xf32>
  %m = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>
  %d = stablehlo.subtract %x, %mb : tensor<8x8xf32>
  %e = stablehlo.exponential %d : tensor<8x8xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>
  %p = stablehlo.divide %e, %lb : tensor<8x8xf32>
  %o = stablehlo.dot_general %p, %v, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %o : tensor<8x4xf32>
}
