// RUN: stablehlo-alpa-opt %s --alpa-mark-layers=micro-batches=1 -verify-diagnostics

// Gradients of what gradients have made: a sum over the micro-batches is there when the last is through.
func.func @main(%w: tensor<16x16xf32>, %v: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  %0 = stablehlo.tanh %w : tensor<16x16xf32> loc("jit(step)/transpose(jvp(alpa_layer_0))/tanh")
  %1 = alpa.accumulate %0 : tensor<16x16xf32>
  // expected-error @below {{'stablehlo.subtract' uses 'jit(step)/transpose(jvp(alpa_layer_0))/tanh', which leaves the differentiated function, and gradients are taken again of what it makes: stablehlo_alpa.grad or value_and_grad stands once in a step, take the other gradients by jax or in a step of their own}}
  %2 = stablehlo.subtract %v, %1 : tensor<16x16xf32>
  %3 = stablehlo.cosine %2 : tensor<16x16xf32> loc("jit(step)/transpose(jvp(alpa_layer_0))/cos")
  %4 = alpa.accumulate %3 : tensor<16x16xf32>
  return %1, %4 : tensor<16x16xf32>, tensor<16x16xf32>
}
