// RUN: stablehlo-alpa-opt %s --alpa-layers-pipeline=micro-batches=2 | FileCheck %s

// A batch of which the micro-batches use their parts, and the rest of the step all of it, is two
// arguments.

// CHECK: func.func @main(%[[W:.+]]: tensor<4x4xf32> {alpa.input = 0 : i64}, %[[X:.+]]: tensor<4x4xf32> {alpa.batch = 1 : i64}, %[[ALL:.+]]: tensor<8x4xf32> {alpa.input = 1 : i64}, %{{.+}}: tensor<ui32> {alpa.micro_batch = 0 : i64})
// CHECK: stablehlo.dot_general %[[X]], %[[W]]
// CHECK: stablehlo.reduce(%[[ALL]] {{.*}}applies stablehlo.maximum{{.*}}alpa.phase = 2
func.func @main(%w: tensor<4x4xf32>, %x: tensor<8x4xf32>) -> (tensor<f32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
  %2 = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
  return %1, %2 : tensor<f32>, tensor<f32>
}
