// RUN: stablehlo-alpa-opt %s --alpa-mark-layers="batch=1 micro-batches=2" -split-input-file -verify-diagnostics

// expected-error @below {{has no gradients that a pipeline can see: use stablehlo_alpa.grad or value_and_grad instead of jax's}}
func.func @main(%w: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  return %w : tensor<4xf32>
}

// -----

func.func @main(%w: tensor<4xf32>, %x: tensor<4xf32>) -> (tensor<4xf32>, tensor<4xf32>) {
  %0 = stablehlo.optimization_barrier %x : tensor<4xf32> loc("jit(step)/alpa_gradients/a")
  // expected-error @unknown {{a second set of gradients}}
  %1 = stablehlo.optimization_barrier %x : tensor<4xf32> loc("jit(step)/alpa_gradients/b")
  return %0, %1 : tensor<4xf32>, tensor<4xf32>
}

// -----

func.func @main(%w: tensor<4xf32>, %x: tensor<4xi32>) -> tensor<4xi32> {
  // expected-error @unknown {{value 0 that leaves the differentiated function has type 'tensor<4xi32>', which has no mean over 2 micro-batches: return a floating-point number}}
  %0 = stablehlo.optimization_barrier %x : tensor<4xi32> loc("jit(step)/alpa_gradients/a")
  return %0 : tensor<4xi32>
}

// -----

func.func @main(%w: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.negate %x : tensor<4xf32> loc("jit(step)/jvp(alpa_layer_0)/neg")
  %1 = stablehlo.optimization_barrier %0 : tensor<4xf32> loc("jit(step)/alpa_gradients/a")
  // expected-error @below {{runs once per step and uses 'jit(step)/jvp(alpa_layer_0)/neg', which is of one of 2 micro-batches: only what the differentiated function returns}}
  %2 = stablehlo.add %1, %0 : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

func.func @main(%w: tensor<4xf32>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.optimization_barrier %x : tensor<4xf32> loc("jit(step)/alpa_gradients/a")
  // expected-error @below {{runs once per step and uses argument 1}}
  %1 = stablehlo.add %0, %x : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

// expected-error @below {{batch argument 1 is none of the 1}}
func.func @main(%w: tensor<4xf32>) -> tensor<4xf32> {
  return %w : tensor<4xf32>
}
