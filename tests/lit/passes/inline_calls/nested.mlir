// RUN: stablehlo-alpa-opt %s -alpa-inline-calls -split-input-file | FileCheck %s

// Calls of calls, and calls in regions; a function that is called twice is
// copied, and nothing private is left.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.tanh
// CHECK-NEXT: stablehlo.cosine
// CHECK: "stablehlo.if"
// CHECK: stablehlo.tanh
// CHECK-NEXT: stablehlo.cosine
// CHECK-NEXT: stablehlo.return
// CHECK: stablehlo.return %arg0
// CHECK-NOT: func.func private
func.func @main(%x: tensor<8xf32>, %p: tensor<i1>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = call @outer(%x) : (tensor<8xf32>) -> tensor<8xf32>
  %1 = "stablehlo.if"(%p) ({
    %2 = func.call @outer(%0) : (tensor<8xf32>) -> tensor<8xf32>
    stablehlo.return %2 : tensor<8xf32>
  }, {
    %2 = func.call @same(%x) : (tensor<8xf32>) -> tensor<8xf32>
    stablehlo.return %2 : tensor<8xf32>
  }) : (tensor<i1>) -> tensor<8xf32>
  return %0, %1 : tensor<8xf32>, tensor<8xf32>
}
func.func private @outer(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.tanh %x : tensor<8xf32>
  %1 = call @inner(%0) : (tensor<8xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
func.func private @inner(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.cosine %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}
func.func private @same(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}

// -----

// Results in another order, and one of them twice.
// CHECK-LABEL: func.func @results
// CHECK: %[[T:.*]] = stablehlo.tanh %arg0
// CHECK: return %[[T]], %arg1, %[[T]]
func.func @results(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0:3 = call @swap(%y, %x) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>)
  return %0#0, %0#1, %0#2 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
func.func private @swap(%a: tensor<8xf32>, %b: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.tanh %b : tensor<8xf32>
  return %0, %a, %0 : tensor<8xf32>, tensor<8xf32>, tensor<8xf32>
}
