// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline -alpa-plan-pipeline="mesh=x:2,y:2 solution=0,0" -alpa-spmd-pipeline | FileCheck %s

// A quantized constant has its elements as they are stored, and stays whole.

// CHECK: stablehlo.constant() <{value = dense<9> : tensor<8x4xi8>}> : () -> tensor<8x4x!quant.uniform<i8:f32, 5.000000e-01>>
func.func @main(%x: tensor<8x4x!quant.uniform<i8:f32, 0.5>>) -> tensor<8x4x!quant.uniform<i8:f32, 0.5>> {
  %0 = stablehlo.constant() {value = dense<9> : tensor<8x4xi8>} : () -> tensor<8x4x!quant.uniform<i8:f32, 0.5>>
  %1 = stablehlo.add %x, %0 : tensor<8x4x!quant.uniform<i8:f32, 0.5>>
  return %1 : tensor<8x4x!quant.uniform<i8:f32, 0.5>>
}
