// RUN: stablehlo-alpa-opt %s -alpa-inline-calls | FileCheck %s

// A function that something other than a call names stays, with its own calls
// inlined; so do external functions and their calls. What only dead functions
// use goes.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.tanh
// CHECK: stablehlo.custom_call @sort({{.*}}called_computations = [@comparator]
// CHECK: call @elsewhere
// CHECK: func.func private @comparator
// CHECK-NEXT: stablehlo.compare
// CHECK: func.func private @elsewhere
// CHECK-NOT: func.func private
func.func @main(%x: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = call @work(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = stablehlo.custom_call @sort(%0) {called_computations = [@comparator]} : (tensor<8xf32>) -> tensor<8xf32>
  %2 = call @elsewhere(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %1, %2 : tensor<8xf32>, tensor<8xf32>
}
func.func private @work(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @comparator(%a: tensor<f32>, %b: tensor<f32>) -> tensor<i1> {
  %0 = call @less(%a, %b) : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func private @less(%a: tensor<f32>, %b: tensor<f32>) -> tensor<i1> {
  %0 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
  return %0 : tensor<i1>
}
func.func private @elsewhere(tensor<8xf32>) -> tensor<8xf32>
func.func private @dead(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @dead_too(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @dead_too(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = call @dead(%x) : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
