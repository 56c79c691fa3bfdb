// RUN: stablehlo-alpa-opt %s --alpa-slice-stages=stages=0,1 | FileCheck %s

// A function that an operator names goes along into the stage of the operator, and what that names.

// CHECK-LABEL: module @stage_0
// CHECK-NOT: @greater
// CHECK-LABEL: module @stage_1
// CHECK: custom_call @ApproxTopK
// CHECK: func.func private @greater
// CHECK: call @later
// CHECK: func.func private @later
func.func @main(%x: tensor<8x64xf32> {alpa.batch = 0 : i64}) -> tensor<8x4xf32> attributes {alpa.micro_batches = 1 : i64} {
  %first = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.tanh %x {alpa.layer = 0 : i64, alpa.phase = 0 : i64} : tensor<8x64xf32>
  %1 = stablehlo.custom_call @ApproxTopK(%0, %first) {called_computations = [@greater], alpa.layer = 1 : i64, alpa.phase = 0 : i64} : (tensor<8x64xf32>, tensor<f32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

func.func @greater(%a: tensor<f32>, %b: tensor<f32>) -> tensor<i1> {
  %0 = call @later(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}

func.func private @later(%a: tensor<f32>, %b: tensor<f32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
