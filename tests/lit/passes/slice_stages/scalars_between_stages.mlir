// RUN: stablehlo-alpa-opt %s --alpa-slice-stages=stages=0,1 | FileCheck %s

// Clipping by a global norm: each stage sums its own gradients, the first adds the sums, both scale
// theirs. Of the second stage's gradient only a number crosses.

// CHECK-LABEL: module @stage_0
// CHECK: func.func @main({{.*}}tensor<f32> {alpa.once, alpa.transfer = [[NORM:[0-9]+]] : i64}{{.*}}) -> ({{.*}}tensor<f32> {alpa.once, alpa.transfer = [[TOTAL:[0-9]+]] : i64}
// CHECK: stablehlo.reduce{{.*}}alpa.phase = 2 : i64
// CHECK: stablehlo.add {{.*}}{alpa.phase = 3 : i64} : tensor<f32>
// CHECK-LABEL: module @stage_1
// CHECK: func.func @main({{.*}}tensor<f32> {alpa.once, alpa.transfer = [[TOTAL]] : i64}) -> (tensor<f32> {alpa.once, alpa.transfer = [[NORM]] : i64}
// CHECK: stablehlo.reduce{{.*}}alpa.phase = 2 : i64
// CHECK: stablehlo.broadcast_in_dim
// CHECK: stablehlo.divide {{.*}}{alpa.phase = 4 : i64}
func.func @main(%a: tensor<64x64xf32>, %b: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) attributes {alpa.micro_batches = 2 : i64} {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.negate %a {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : tensor<64x64xf32>
  %1 = stablehlo.negate %b {alpa.layer = 1 : i64, alpa.phase = 1 : i64} : tensor<64x64xf32>
  %g0 = alpa.accumulate %0 {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : tensor<64x64xf32>
  %g1 = alpa.accumulate %1 {alpa.layer = 1 : i64, alpa.phase = 1 : i64} : tensor<64x64xf32>
  %n0 = stablehlo.reduce(%g0 init: %zero) applies stablehlo.add across dimensions = [0, 1] {alpa.phase = 2 : i64} : (tensor<64x64xf32>, tensor<f32>) -> tensor<f32>
  %n1 = stablehlo.reduce(%g1 init: %zero) applies stablehlo.add across dimensions = [0, 1] {alpa.phase = 2 : i64} : (tensor<64x64xf32>, tensor<f32>) -> tensor<f32>
  %n = stablehlo.add %n0, %n1 {alpa.phase = 2 : i64} : tensor<f32>
  %s = stablehlo.broadcast_in_dim %n, dims = [] {alpa.phase = 2 : i64} : (tensor<f32>) -> tensor<64x64xf32>
  %2 = stablehlo.divide %g0, %s {alpa.phase = 2 : i64} : tensor<64x64xf32>
  %3 = stablehlo.divide %g1, %s {alpa.phase = 2 : i64} : tensor<64x64xf32>
  return %2, %3 : tensor<64x64xf32>, tensor<64x64xf32>
}
