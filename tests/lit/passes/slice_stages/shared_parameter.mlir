// RUN: stablehlo-alpa-opt %s --alpa-slice-stages=stages=0,1 | FileCheck %s

// A parameter that two stages use belongs to the first. Each sums its share of the gradient over
// the micro-batches; the shares are added once per step.

// CHECK-LABEL: module @stage_0
// CHECK: func.func @main({{.*}}{alpa.input = 0 : i64}{{.*}}{alpa.transfer = [[T:[0-9]+]] : i64}
// CHECK: %[[OWN:.+]] = alpa.accumulate %{{.+}} {alpa.layer = 0 : i64
// CHECK: stablehlo.add %{{.+}}, %{{.+}} {alpa.phase = 3 : i64}
// CHECK: stablehlo.subtract {{.*}}{alpa.phase = 3 : i64}
// CHECK-LABEL: module @stage_1
// CHECK: %[[SUM:.+]] = alpa.accumulate %{{.+}} {alpa.layer = 1 : i64
// CHECK: return {{.*}}%[[SUM]]
func.func @main(%w: tensor<64x64xf32>, %x: tensor<64x64xf32> {alpa.batch = 1 : i64}) -> tensor<64x64xf32> attributes {alpa.micro_batches = 2 : i64} {
  %0 = stablehlo.multiply %w, %x {alpa.layer = 0 : i64, alpa.phase = 0 : i64} : tensor<64x64xf32>
  %1 = stablehlo.multiply %w, %0 {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : tensor<64x64xf32>
  %2 = stablehlo.multiply %1, %0 {alpa.layer = 1 : i64, alpa.phase = 1 : i64} : tensor<64x64xf32>
  %3 = stablehlo.multiply %x, %w {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : tensor<64x64xf32>
  %4 = stablehlo.add %2, %3 {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : tensor<64x64xf32>
  %5 = alpa.accumulate %4 {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : tensor<64x64xf32>
  %6 = stablehlo.subtract %w, %5 {alpa.phase = 2 : i64} : tensor<64x64xf32>
  return %6 : tensor<64x64xf32>
}
