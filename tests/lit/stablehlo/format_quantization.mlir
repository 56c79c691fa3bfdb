// RUN: stablehlo-alpa-opt %s -o %t.once && stablehlo-alpa-opt %t.once | diff %t.once -
// RUN: stablehlo-alpa-opt %s -mlir-print-op-generic -o %t.generic && stablehlo-alpa-opt %t.generic | diff %t.once -
// RUN: FileCheck %s < %t.once

!q = !quant.uniform<i8:f32, 5.000000e-01:3>
!r = !quant.uniform<i8:f32, 2.500000e-01>
!acc = !quant.uniform<i32:f32, 1.250000e-01>
!axis = !quant.uniform<i8:f32:1, {5.000000e-01, 2.500000e-01}>

// CHECK-LABEL: @there_and_back
func.func @there_and_back(%x: tensor<4x2xf32>) -> tensor<4x2xf32> {
  // CHECK: stablehlo.uniform_quantize %{{.*}} : (tensor<4x2xf32>) -> tensor<4x2x!quant.uniform<i8:f32, 5.000000e-01:3>>
  %0 = stablehlo.uniform_quantize %x : (tensor<4x2xf32>) -> tensor<4x2x!q>
  // CHECK: stablehlo.uniform_quantize %{{.*}} -> tensor<4x2x!quant.uniform<i8:f32:1, {5.000000e-01,2.500000e-01}>>
  %1 = stablehlo.uniform_quantize %0 : (tensor<4x2x!q>) -> tensor<4x2x!axis>
  // CHECK: stablehlo.uniform_dequantize
  %2 = stablehlo.uniform_dequantize %1 : (tensor<4x2x!axis>) -> tensor<4x2xf32>
  return %2 : tensor<4x2xf32>
}

// CHECK-LABEL: @constant
func.func @constant() -> tensor<2x!q> {
  // CHECK: stablehlo.constant() <{value = dense<[1, 2]> : tensor<2xi8>}> : () -> tensor<2x!quant.uniform<i8:f32, 5.000000e-01:3>>
  %0 = stablehlo.constant() {value = dense<[1, 2]> : tensor<2xi8>} : () -> tensor<2x!q>
  return %0 : tensor<2x!q>
}

// Scales and zero points may differ where the stored and expressed types agree.
// CHECK-LABEL: @arithmetic
func.func @arithmetic(%x: tensor<4x2x!q>, %y: tensor<4x2x!r>, %w: tensor<2x3x!r>) -> tensor<4x3x!acc> {
  // CHECK: stablehlo.add %{{.*}}, %{{.*}} : (tensor
  %0 = stablehlo.add %x, %y : (tensor<4x2x!q>, tensor<4x2x!r>) -> tensor<4x2x!q>
  // CHECK: stablehlo.tanh %{{.*}} : (tensor
  %1 = stablehlo.tanh %0 : (tensor<4x2x!q>) -> tensor<4x2x!r>
  // CHECK: stablehlo.dot_general
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<4x2x!r>, tensor<2x3x!r>) -> tensor<4x3x!acc>
  return %2 : tensor<4x3x!acc>
}

// CHECK-LABEL: @transposed
func.func @transposed(%x: tensor<4x2x!axis>) -> tensor<2x4x!quant.uniform<i8:f32:0, {5.000000e-01, 2.500000e-01}>> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<4x2x!axis>) -> tensor<2x4x!quant.uniform<i8:f32:0, {5.000000e-01, 2.500000e-01}>>
  return %0 : tensor<2x4x!quant.uniform<i8:f32:0, {5.000000e-01, 2.500000e-01}>>
}
