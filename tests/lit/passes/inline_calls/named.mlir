// RUN: stablehlo-alpa-opt %s -alpa-inline-calls -canonicalize -alpa-import | FileCheck %s

// A comparator that JAX leaves public, of an operator whose results nobody reads.
// CHECK: func.func private @less
// CHECK: func.func public @main
func.func @less(%a: tensor<f32>, %b: tensor<f32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<i1> {
  %0 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func public @main(%x: tensor<16x32xf32>, %n: tensor<16x32xi32>, %v: tensor<f32>, %i: tensor<i32>) -> tensor<16x32xf32> {
  %0:2 = stablehlo.custom_call @ApproxTopK(%x, %n, %v, %i) {called_computations = [@less]} : (tensor<16x32xf32>, tensor<16x32xi32>, tensor<f32>, tensor<i32>) -> (tensor<16x3xf32>, tensor<16x3xi32>)
  return %x : tensor<16x32xf32>
}
