// RUN: stablehlo-alpa-opt %s --alpa-mark-layers=micro-batches=2 -split-input-file -verify-diagnostics

// What runs once per step sees joins alone.

func.func @main(%w: tensor<4xf32>, %x: tensor<4xf32> {alpa.batch = 1 : i64}) -> tensor<4xf32> {
  %0 = stablehlo.negate %x : tensor<4xf32> loc("jit(step)/jvp(alpa_layer_0)/neg")
  %1 = alpa.accumulate %0 : tensor<4xf32>
  // expected-error @below {{runs once per step and uses 'jit(step)/jvp(alpa_layer_0)/neg', which is of one of 2 micro-batches: it has to be joined first}}
  %2 = stablehlo.add %1, %0 : tensor<4xf32>
  return %2 : tensor<4xf32>
}

// -----

func.func @main(%w: tensor<4xf32>, %x: tensor<4xf32> {alpa.batch = 1 : i64}) -> tensor<4xf32> {
  %0 = alpa.accumulate %x : tensor<4xf32>
  // expected-error @below {{runs once per step and uses argument 1, which is of one of 2 micro-batches}}
  %1 = stablehlo.add %0, %x : tensor<4xf32>
  return %1 : tensor<4xf32>
}

// -----

func.func @main(%w: tensor<4xui32>, %n: tensor<ui32> {alpa.micro_batch = 0 : i64}) -> tensor<4xui32> {
  %0 = stablehlo.broadcast_in_dim %n, dims = [] : (tensor<ui32>) -> tensor<4xui32> loc("jit(step)/spread")
  // expected-error @unknown {{runs once per step and uses argument 1, which is of one of 2 micro-batches}}
  %1 = stablehlo.add %w, %0 : tensor<4xui32>
  return %1 : tensor<4xui32>
}
