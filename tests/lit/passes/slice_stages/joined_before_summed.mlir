// RUN: stablehlo-alpa-opt %s --alpa-slice-stages=stages=0,1 | FileCheck %s

// The parts are put together within the micro-batch, by what JAX makes of the gradient of slices. They
// are added up over the micro-batches first, and put together once per step.

// CHECK-LABEL: module @stage_0
// CHECK: func.func @main({{.*}}%[[PART:.+]]: tensor<64x64xf32> {alpa.once, alpa.transfer = [[BACK:[0-9]+]] : i64})
// CHECK: %[[OWN:.+]] = alpa.accumulate %{{.+}} : tensor<64x64xf32>
// CHECK-NOT: alpa.accumulate
// CHECK-DAG: stablehlo.pad %[[OWN]]
// CHECK-DAG: stablehlo.pad %[[PART]]
// CHECK: stablehlo.subtract {{.*}} {alpa.phase = 3 : i64} : tensor<128x64xf32>
// CHECK-LABEL: module @stage_1
// CHECK: %[[SUM:.+]] = alpa.accumulate %{{.+}} : tensor<64x64xf32>
// CHECK: return %[[SUM]]
func.func @main(%w: tensor<128x64xf32>, %v: tensor<64x64xf32>) -> (tensor<128x64xf32>) attributes {alpa.micro_batches = 2 : i64} {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %a = "stablehlo.slice"(%w) <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 64, 64>, strides = array<i64: 1, 1>}> {alpa.layer = 0 : i64, alpa.phase = 0 : i64} : (tensor<128x64xf32>) -> tensor<64x64xf32>
  %b = "stablehlo.slice"(%w) <{start_indices = array<i64: 64, 0>, limit_indices = array<i64: 128, 64>, strides = array<i64: 1, 1>}> {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : (tensor<128x64xf32>) -> tensor<64x64xf32>
  %0 = stablehlo.tanh %a {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : tensor<64x64xf32>
  %1 = stablehlo.multiply %b, %v {alpa.layer = 1 : i64, alpa.phase = 1 : i64} : tensor<64x64xf32>
  %p0 = stablehlo.pad %0, %zero, low = [0, 0], high = [64, 0], interior = [0, 0] {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : (tensor<64x64xf32>, tensor<f32>) -> tensor<128x64xf32>
  %p1 = stablehlo.pad %1, %zero, low = [64, 0], high = [0, 0], interior = [0, 0] {alpa.layer = 1 : i64, alpa.phase = 1 : i64} : (tensor<64x64xf32>, tensor<f32>) -> tensor<128x64xf32>
  %g = stablehlo.add %p1, %p0 {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : tensor<128x64xf32>
  %s = alpa.accumulate %g {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : tensor<128x64xf32>
  %2 = stablehlo.subtract %w, %s {alpa.phase = 2 : i64} : tensor<128x64xf32>
  return %2 : tensor<128x64xf32>
}
