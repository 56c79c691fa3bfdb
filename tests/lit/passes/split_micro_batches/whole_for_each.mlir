// RUN: stablehlo-alpa-opt %s --alpa-layers-pipeline=micro-batches=2 | FileCheck %s

// A mean over a mask: every micro-batch counts all of the mask for itself, and weighs its own part.

// CHECK: %[[M:[a-z0-9]+]]: tensor<4xf32> {alpa.batch = 1 : i64}, %[[ALL:.+]]: tensor<8xf32> {alpa.input = 1 : i64}, %{{.+}}: tensor<ui32> {alpa.micro_batch
// CHECK: %[[COUNT:.+]] = stablehlo.reduce(%[[ALL]] {{.*}}alpa.phase = 0
// CHECK: %[[OWN:.+]] = stablehlo.multiply %{{.+}}, %[[M]]
// CHECK: stablehlo.divide %{{.+}}, %[[COUNT]]
func.func @main(%x: tensor<8xf32>, %m: tensor<8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.reduce(%m init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %1 = stablehlo.multiply %x, %m : tensor<8xf32>
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %3 = stablehlo.divide %2, %0 : tensor<f32>
  %4 = stablehlo.broadcast_in_dim %3, dims = [] : (tensor<f32>) -> tensor<8xf32>
  return %4 : tensor<8xf32>
}
