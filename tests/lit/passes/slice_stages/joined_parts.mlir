// RUN: stablehlo-alpa-opt %s --alpa-slice-stages=stages=0,1 | FileCheck %s

// Each layer uses a slice of one parameter. It is cut where the parameter is, and of the gradient too
// only the part crosses, once per step: the first stage puts the parts together.

// CHECK-LABEL: module @stage_0
// CHECK: func.func @main(%[[W:.+]]: tensor<128x64xf32> {alpa.input = 0 : i64}, %[[PART:.+]]: tensor<64x64xf32> {alpa.once, alpa.transfer = [[BACK:[0-9]+]] : i64}) -> (tensor<64x64xf32> {alpa.once, alpa.transfer = [[THERE:[0-9]+]] : i64}, tensor<128x64xf32> {alpa.output = 0 : i64})
// CHECK: stablehlo.slice %[[W]] [64:128, 0:64] {{.*}}alpa.once
// CHECK: %[[OWN:.+]] = alpa.accumulate
// CHECK: stablehlo.pad %[[OWN]]
// CHECK: stablehlo.pad %[[PART]]
// CHECK: %[[G:.+]] = stablehlo.add {{.*}} : tensor<128x64xf32>
// CHECK: stablehlo.subtract %[[W]], %[[G]] {alpa.phase = 3 : i64}
// CHECK-LABEL: module @stage_1
// CHECK: func.func @main(%{{.+}}: tensor<64x64xf32> {alpa.once, alpa.transfer = [[THERE]] : i64}, %{{.+}}: tensor<64x64xf32> {alpa.input = 1 : i64}) -> (tensor<64x64xf32> {alpa.once, alpa.transfer = [[BACK]] : i64}, tensor<64x64xf32> {alpa.output = 1 : i64})
// CHECK-NOT: stablehlo.pad
func.func @main(%w: tensor<128x64xf32>, %v: tensor<64x64xf32>) -> (tensor<128x64xf32>, tensor<64x64xf32>) attributes {alpa.micro_batches = 2 : i64} {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %a = "stablehlo.slice"(%w) <{start_indices = array<i64: 0, 0>, limit_indices = array<i64: 64, 64>, strides = array<i64: 1, 1>}> {alpa.layer = 0 : i64, alpa.phase = 0 : i64} : (tensor<128x64xf32>) -> tensor<64x64xf32>
  %b = "stablehlo.slice"(%w) <{start_indices = array<i64: 64, 0>, limit_indices = array<i64: 128, 64>, strides = array<i64: 1, 1>}> {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : (tensor<128x64xf32>) -> tensor<64x64xf32>
  %0 = stablehlo.tanh %a {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : tensor<64x64xf32>
  %1 = stablehlo.multiply %b, %v {alpa.layer = 1 : i64, alpa.phase = 1 : i64} : tensor<64x64xf32>
  %g0 = alpa.accumulate %0 {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : tensor<64x64xf32>
  %g1 = alpa.accumulate %1 {alpa.layer = 1 : i64, alpa.phase = 1 : i64} : tensor<64x64xf32>
  %p0 = stablehlo.pad %g0, %zero, low = [0, 0], high = [64, 0], interior = [0, 0] {alpa.phase = 2 : i64} : (tensor<64x64xf32>, tensor<f32>) -> tensor<128x64xf32>
  %p1 = stablehlo.pad %g1, %zero, low = [64, 0], high = [0, 0], interior = [0, 0] {alpa.phase = 2 : i64} : (tensor<64x64xf32>, tensor<f32>) -> tensor<128x64xf32>
  %g = stablehlo.add %p0, %p1 {alpa.phase = 2 : i64} : tensor<128x64xf32>
  %2 = stablehlo.subtract %w, %g {alpa.phase = 2 : i64} : tensor<128x64xf32>
  %3 = stablehlo.subtract %v, %g1 {alpa.phase = 2 : i64} : tensor<64x64xf32>
  return %2, %3 : tensor<128x64xf32>, tensor<64x64xf32>
}
