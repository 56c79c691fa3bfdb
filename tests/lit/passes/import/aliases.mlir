// RUN: stablehlo-alpa-opt %s -pass-pipeline='builtin.module(alpa-import{aliases=0:1})' | FileCheck %s

// CHECK: func.func @main(%{{.*}}: tensor<8xf32> {alpa.alias = 1 : i64}, %{{.*}}: tensor<f32>)
func.func @main(%a: tensor<8xf32>, %b: tensor<f32>) -> (tensor<f32>, tensor<8xf32>) {
  return %b, %a : tensor<f32>, tensor<8xf32>
}
