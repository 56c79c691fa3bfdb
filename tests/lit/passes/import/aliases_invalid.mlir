// RUN: stablehlo-alpa-opt %s -pass-pipeline='builtin.module(alpa-import{aliases=0:0})' -split-input-file -verify-diagnostics

// expected-error @below {{alias '0:0' joins 'tensor<8xf32>' with 'tensor<f32>'}}
func.func @types_differ(%a: tensor<8xf32>, %b: tensor<f32>) -> tensor<f32> {
  return %b : tensor<f32>
}

// -----

// expected-error @below {{alias '0:0' names no argument and result of the 1 and 0}}
func.func @no_such_result(%a: tensor<8xf32>) {
  return
}
