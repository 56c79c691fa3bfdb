// RUN: stablehlo-alpa-opt %s -alpa-row-major-results | FileCheck %s

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

// Convolutions of 8-bit integers into 32-bit ones go to a library, others do not.

// CHECK-LABEL: @convolution
// CHECK: %[[MADE:.+]] = stablehlo.convolution{{.+}} -> tensor<4x6x6x16xi32>
// CHECK-NEXT: %[[FLAT:.+]] = stablehlo.reshape %[[MADE]]
// CHECK-NEXT: %[[FENCE:.+]] = stablehlo.optimization_barrier %[[FLAT]] : tensor<2304xi32>
// CHECK-NEXT: %[[SHAPED:.+]] = stablehlo.reshape %[[FENCE]]
// CHECK-NEXT: %[[WIDE:.+]] = stablehlo.convolution{{.+}} -> tensor<4x6x6x16xi16>
// CHECK-NEXT: return %[[SHAPED]], %[[WIDE]]
func.func @convolution(%a: tensor<4x8x8x4xi8>, %b: tensor<3x3x4x16xi8>) -> (tensor<4x6x6x16xi32>, tensor<4x6x6x16xi16>) {
  %0 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x8x8x4xi8>, tensor<3x3x4x16xi8>) -> tensor<4x6x6x16xi32>
  %1 = stablehlo.convolution(%a, %b) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x8x8x4xi8>, tensor<3x3x4x16xi8>) -> tensor<4x6x6x16xi16>
  return %0, %1 : tensor<4x6x6x16xi32>, tensor<4x6x6x16xi16>
}
