// RUN: stablehlo-alpa-opt %s --alpa-split-micro-batches="batch=1 micro-batches=2 independent=mean" -verify-diagnostics

func.func @main(%w: tensor<4xf32>, %x: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error @unknown {{value 0 that leaves the differentiated function has type 'tensor<4xi32>', which has no mean over 2 micro-batches: return a floating-point number, or use reduction="sum"}}
  %0 = stablehlo.abs %x : tensor<4xi32> loc("jit(step)/count")
  %1 = stablehlo.optimization_barrier %0 : tensor<4xi32> loc("jit(step)/alpa_gradients/a")
  return %1 : tensor<4xi32>
}
