// RUN: stablehlo-alpa-opt %s -alpa-row-major-transforms | FileCheck %s

// What follows sees the result by way of one dimension.

// CHECK-LABEL: @rows
// CHECK: %[[MADE:.+]] = stablehlo.fft
// CHECK-NEXT: %[[FLAT:.+]] = stablehlo.reshape %[[MADE]] : (tensor<8x16xcomplex<f32>>) -> tensor<128xcomplex<f32>>
// CHECK-NEXT: %[[FENCE:.+]] = stablehlo.optimization_barrier %[[FLAT]] : tensor<128xcomplex<f32>>
// CHECK-NEXT: %[[SHAPED:.+]] = stablehlo.reshape %[[FENCE]] : (tensor<128xcomplex<f32>>) -> tensor<8x16xcomplex<f32>>
// CHECK-NEXT: return %[[SHAPED]], %[[SHAPED]]
func.func @rows(%a: tensor<8x16xcomplex<f32>>) -> (tensor<8x16xcomplex<f32>>, tensor<8x16xcomplex<f32>>) {
  %0 = "stablehlo.fft"(%a) <{fft_type = #stablehlo<fft_type FFT>, fft_length = array<i64: 16>}> : (tensor<8x16xcomplex<f32>>) -> tensor<8x16xcomplex<f32>>
  return %0, %0 : tensor<8x16xcomplex<f32>>, tensor<8x16xcomplex<f32>>
}

// One dimension has one layout.

// CHECK-LABEL: @line
// CHECK: %[[MADE:.+]] = stablehlo.fft
// CHECK-NEXT: return %[[MADE]]
func.func @line(%a: tensor<16xcomplex<f32>>) -> tensor<16xcomplex<f32>> {
  %0 = "stablehlo.fft"(%a) <{fft_type = #stablehlo<fft_type FFT>, fft_length = array<i64: 16>}> : (tensor<16xcomplex<f32>>) -> tensor<16xcomplex<f32>>
  return %0 : tensor<16xcomplex<f32>>
}
