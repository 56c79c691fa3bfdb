// RUN: stablehlo-alpa-opt %s --alpa-slice-stages=stages=0,1 --split-input-file | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-slice-stages=stages=0,1 --split-input-file | FileCheck %s --check-prefix=PHASE

// Layers of a stacked parameter: the second stage gets its own once per step, not with every
// micro-batch. Activations cross with each.

// CHECK-LABEL: module @stage_0
// CHECK: func.func @main(%[[W:.+]]: tensor<2x64x64xf32> {alpa.input = 0 : i64}, %[[X:.+]]: tensor<64x64xf32> {alpa.batch = 1 : i64})
// CHECK-SAME: -> (tensor<1x64x64xf32> {alpa.once, alpa.transfer = 0 : i64}, tensor<64x64xf32> {alpa.transfer = 1 : i64})
// CHECK: stablehlo.slice %[[W]] [0:1, 0:64, 0:64] {alpa.layer = 0 : i64, alpa.phase = 0 : i64}
// CHECK: stablehlo.slice %[[W]] [1:2, 0:64, 0:64] {alpa.layer = 1 : i64, alpa.once, alpa.phase = 0 : i64}
// CHECK-LABEL: module @stage_1
// CHECK: func.func @main(%{{.+}}: tensor<1x64x64xf32> {alpa.once, alpa.transfer = 0 : i64}, %{{.+}}: tensor<64x64xf32> {alpa.transfer = 1 : i64})
// PHASE-NOT: stablehlo.tanh {{.*}}alpa.once
func.func @main(%w: tensor<2x64x64xf32>, %x: tensor<64x64xf32> {alpa.batch = 1 : i64}) -> tensor<64x64xf32> attributes {alpa.micro_batches = 2 : i64} {
  %0 = stablehlo.slice %w [0:1, 0:64, 0:64] {alpa.layer = 0 : i64, alpa.phase = 0 : i64} : (tensor<2x64x64xf32>) -> tensor<1x64x64xf32>
  %1 = stablehlo.slice %w [1:2, 0:64, 0:64] {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : (tensor<2x64x64xf32>) -> tensor<1x64x64xf32>
  %2 = stablehlo.reshape %0 {alpa.layer = 0 : i64, alpa.phase = 0 : i64} : (tensor<1x64x64xf32>) -> tensor<64x64xf32>
  %3 = stablehlo.multiply %x, %2 {alpa.layer = 0 : i64, alpa.phase = 0 : i64} : tensor<64x64xf32>
  %4 = stablehlo.tanh %3 {alpa.layer = 0 : i64, alpa.phase = 0 : i64} : tensor<64x64xf32>
  %5 = stablehlo.reshape %1 {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : (tensor<1x64x64xf32>) -> tensor<64x64xf32>
  %6 = stablehlo.multiply %4, %5 {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : tensor<64x64xf32>
  %7 = alpa.accumulate %6 {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : tensor<64x64xf32>
  return %7 : tensor<64x64xf32>
}
