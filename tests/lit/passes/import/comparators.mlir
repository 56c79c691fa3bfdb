// RUN: stablehlo-alpa-opt %s -pass-pipeline='builtin.module(alpa-prepare-pipeline)' | FileCheck %s

// A function that an operator names is none to plan, and stays.

// CHECK: func.func @main
// CHECK: custom_call @ApproxTopK{{.*}}called_computations = [@greater]
// CHECK: func.func private @greater
func.func @main(%x: tensor<8x64xf32>) -> tensor<8x4xf32> {
  %i = stablehlo.iota dim = 1 : tensor<8x64xi32>
  %first = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %none = stablehlo.constant dense<-1> : tensor<i32>
  %0:2 = stablehlo.custom_call @ApproxTopK(%x, %i, %first, %none) {called_computations = [@greater], mhlo.backend_config = {reduction_dim = 1 : i64, top_k = 4 : i64}} : (tensor<8x64xf32>, tensor<8x64xi32>, tensor<f32>, tensor<i32>) -> (tensor<8x4xf32>, tensor<8x4xi32>)
  return %0#0 : tensor<8x4xf32>
}

func.func @greater(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare GT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
