// RUN: stablehlo-alpa-opt %s -alpa-inline-calls -mlir-print-debuginfo -mlir-print-local-scope | FileCheck %s
// RUN: stablehlo-alpa-opt %s -alpa-inline-calls -mlir-print-debuginfo -o %t.own
// RUN: stablehlo-alpa-opt %s -pass-pipeline='builtin.module(inline{default-pipeline=},symbol-dce)' -mlir-print-debuginfo | diff %t.own -

// The calls stand around the location of an operator, innermost first, be the
// body copied or moved; as MLIR's inliner has it, too.
// CHECK: stablehlo.tanh {{.*}} loc(callsite("tanh" at "layer_0"))
// CHECK: stablehlo.cosine {{.*}} loc(callsite("cosine" at callsite("activation" at "layer_0")))
// CHECK: stablehlo.reduce
// CHECK: reducer({{.*}} loc(callsite("left" at callsite("activation" at "layer_0")))
// CHECK: stablehlo.tanh {{.*}} loc(callsite("tanh" at "layer_1"))
// CHECK: stablehlo.cosine {{.*}} loc(callsite("cosine" at callsite("activation" at "layer_1")))
func.func @main(%x: tensor<8xf32>) -> tensor<f32> {
  %0 = call @layer(%x) : (tensor<8xf32>) -> tensor<f32> loc("layer_0")
  %1 = call @layer(%x) : (tensor<8xf32>) -> tensor<f32> loc("layer_1")
  %2 = stablehlo.add %0, %1 : tensor<f32>
  return %2 : tensor<f32>
}
func.func private @layer(%x: tensor<8xf32>) -> tensor<f32> {
  %0 = stablehlo.tanh %x : tensor<8xf32> loc("tanh")
  %1 = call @activation(%0) : (tensor<8xf32>) -> tensor<f32> loc("activation")
  return %1 : tensor<f32>
}
func.func private @activation(%x: tensor<8xf32>) -> tensor<f32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32> loc("zero")
  %0 = stablehlo.cosine %x : tensor<8xf32> loc("cosine")
  %1 = "stablehlo.reduce"(%0, %zero) <{dimensions = array<i64: 0>}> ({
  ^bb0(%a: tensor<f32> loc("left"), %b: tensor<f32> loc("right")):
    %2 = stablehlo.atan2 %a, %b : tensor<f32> loc("combine")
    stablehlo.return %2 : tensor<f32> loc("return")
  }) : (tensor<8xf32>, tensor<f32>) -> tensor<f32> loc("reduce")
  return %1 : tensor<f32>
}
