// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics -alpa-enumerate-strategies=mesh=x:2

func.func @no_role(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{has no 'alpa.role': run alpa-merge-operators before planning}}
  %0 = stablehlo.tanh %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @follows_nobody(%x: tensor<f32>) -> tensor<8xf32> {
  %0 = stablehlo.constant {alpa.role = "replicated"} dense<0.0> : tensor<8xf32>
  // expected-error @+1 {{'alpa.follows' names no operand that can be followed}}
  %1 = stablehlo.tanh %0 {alpa.role = "follower", alpa.follows = 0 : i64} : tensor<8xf32>
  return %1 : tensor<8xf32>
}
