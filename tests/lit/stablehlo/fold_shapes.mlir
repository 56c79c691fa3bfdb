// RUN: stablehlo-alpa-opt %s --canonicalize | FileCheck %s

// CHECK-LABEL: @transposes
// CHECK-NEXT: return %arg0
func.func @transposes(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<3x2xf32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// CHECK-LABEL: @constants_stay_apart
// CHECK-DAG: dense<0.000000e+00>
// CHECK-DAG: dense<2.000000e+00>
func.func @constants_stay_apart() -> (tensor<f32>, tensor<f32>) {
  %0 = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.constant dense<2.0> : tensor<f32>
  return %0, %1 : tensor<f32>, tensor<f32>
}
