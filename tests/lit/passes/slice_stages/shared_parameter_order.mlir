// RUN: stablehlo-alpa-opt %s --alpa-slice-stages=stages=0,1,1 | FileCheck %s

// The share of a stage in a sum stands where its part of the gradient is made, among the sums of its layer: what the
// gradient is made of may end with the layer, before the backward phase comes to the one below.

// CHECK-LABEL: module @stage_1
// CHECK: %[[SHARE:.+]] = stablehlo.multiply {{.*}}{alpa.layer = 2 : i64, alpa.phase = 1 : i64}
// CHECK-NEXT: %[[SUM:.+]] = alpa.accumulate %[[SHARE]] {alpa.layer = 2 : i64, alpa.phase = 1 : i64}
// CHECK-NEXT: stablehlo.tanh {{.*}}{alpa.layer = 1 : i64, alpa.phase = 1 : i64}
func.func @main(%w: tensor<64x64xf32>, %x: tensor<64x64xf32> {alpa.batch = 1 : i64}) -> tensor<64x64xf32> attributes {alpa.micro_batches = 2 : i64} {
  %0 = stablehlo.multiply %w, %x {alpa.layer = 0 : i64, alpa.phase = 0 : i64} : tensor<64x64xf32>
  %1 = stablehlo.sine %0 {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : tensor<64x64xf32>
  %2 = stablehlo.multiply %w, %1 {alpa.layer = 2 : i64, alpa.phase = 0 : i64} : tensor<64x64xf32>
  %3 = stablehlo.multiply %2, %1 {alpa.layer = 2 : i64, alpa.phase = 1 : i64} : tensor<64x64xf32>
  %4 = stablehlo.tanh %2 {alpa.layer = 1 : i64, alpa.phase = 1 : i64} : tensor<64x64xf32>
  %5 = stablehlo.multiply %4, %x {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : tensor<64x64xf32>
  %6 = stablehlo.add %3, %5 {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : tensor<64x64xf32>
  %7 = alpa.accumulate %6 {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : tensor<64x64xf32>
  %8 = stablehlo.subtract %w, %7 {alpa.phase = 2 : i64} : tensor<64x64xf32>
  return %8 : tensor<64x64xf32>
}
