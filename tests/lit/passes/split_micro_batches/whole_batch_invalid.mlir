// RUN: stablehlo-alpa-opt %s --alpa-split-micro-batches=micro-batches=2 -split-input-file -verify-diagnostics

// Rows that meet each other.
func.func @main(%w: tensor<5x5xf32>, %x: tensor<8x5xf32>) -> tensor<f32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x5xf32>, tensor<5x5xf32>) -> tensor<8x5xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-error @unknown {{'jit(step)/scores' cannot run once per micro-batch: it needs the whole batch, not one of 2 parts along dimension 0 (a sum over the batch that is not simply added up, such as batch statistics, or rows that meet each other; examples along another dimension have to be passed along the first and swapped inside of the function): use num_micro_batches=1, or micro_batches="independent"}}
  %1 = stablehlo.dot_general %0, %0, contracting_dims = [1] x [1] : (tensor<8x5xf32>, tensor<8x5xf32>) -> tensor<8x8xf32> loc("jit(step)/scores")
  %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<f32>
  return %2 : tensor<f32>
}

// -----

// Statistics of the batch, with most products behind them: the first is named, and the sum that is at fault.
func.func @main(%w: tensor<5x5xf32>, %x: tensor<8x5xf32>) -> tensor<8x5xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x5xf32>, tensor<5x5xf32>) -> tensor<8x5xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<8x5xf32>, tensor<f32>) -> tensor<5xf32>
  %2 = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<5xf32>) -> tensor<8x5xf32>
  %3 = stablehlo.subtract %0, %2 : tensor<8x5xf32> loc("jit(step)/centre")
  // expected-error @unknown {{'jit(step)/next' cannot run once per micro-batch: what it uses comes from 'jit(step)/centre', which needs the whole batch}}
  %4 = stablehlo.dot_general %3, %w, contracting_dims = [1] x [0] : (tensor<8x5xf32>, tensor<5x5xf32>) -> tensor<8x5xf32> loc("jit(step)/next")
  %5 = stablehlo.dot_general %4, %w, contracting_dims = [1] x [0] : (tensor<8x5xf32>, tensor<5x5xf32>) -> tensor<8x5xf32>
  return %5 : tensor<8x5xf32>
}

// -----

// Some of the examples, as `model(x)[:6]`.
func.func @main(%w: tensor<5x5xf32>, %x: tensor<8x5xf32>) -> tensor<6x5xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x5xf32>, tensor<5x5xf32>) -> tensor<8x5xf32>
  %1 = stablehlo.slice %0 [0:6, 0:5] : (tensor<8x5xf32>) -> tensor<6x5xf32> loc("jit(step)/some")
  %2 = stablehlo.tanh %1 : tensor<6x5xf32>
  // expected-error @unknown {{'jit(step)/next' cannot run once per micro-batch: what it uses comes from 'jit(step)/some', which takes some examples of a value of which each of 2 micro-batches has a part: take these examples of the batch before the model sees them}}
  %3 = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0] : (tensor<6x5xf32>, tensor<5x5xf32>) -> tensor<6x5xf32> loc("jit(step)/next")
  %4 = stablehlo.dot_general %3, %w, contracting_dims = [1] x [0] : (tensor<6x5xf32>, tensor<5x5xf32>) -> tensor<6x5xf32>
  return %4 : tensor<6x5xf32>
}
