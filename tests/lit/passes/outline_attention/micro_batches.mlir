// RUN: stablehlo-alpa-opt %s -alpa-layers-pipeline="micro-batches=2 attention-keys=8" | FileCheck %s
// RUN: stablehlo-alpa-opt %s -alpa-layers-pipeline="micro-batches=2" | FileCheck %s --check-prefix=PLAIN

// Attention of a micro-batch is one operator, of the layer and the phase of its products.

// CHECK: "alpa.attention"(%{{.+}}, %{{.+}}, %{{.+}}) <{batch = 1 : i64
// CHECK: tensor<2x8x8xf32>
// CHECK: alpa.layer = 0 : i64, alpa.phase = 0 : i64} : (tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
// CHECK-NOT: stablehlo.exponential
// PLAIN-NOT: alpa.attention
// PLAIN: stablehlo.exponential
func.func @main(%q: tensor<4x8x4xf32>, %k: tensor<4x8x4xf32>, %v: tensor<4x8x4xf32>) -> tensor<4x8x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %x = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x8x4xf32>, tensor<4x8x4xf32>) -> tensor<4x8x8xf32>
  %m = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [2] : (tensor<4x8x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<4x8xf32>) -> tensor<4x8x8xf32>
  %d = stablehlo.subtract %x, %mb : tensor<4x8x8xf32>
  %e = stablehlo.exponential %d : tensor<4x8x8xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<4x8x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<4x8xf32>) -> tensor<4x8x8xf32>
  %p = stablehlo.divide %e, %lb : tensor<4x8x8xf32>
  %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x8x8xf32>, tensor<4x8x4xf32>) -> tensor<4x8x4xf32>
  return %o : tensor<4x8x4xf32>
}
