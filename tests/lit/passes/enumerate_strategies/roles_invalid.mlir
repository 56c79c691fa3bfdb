// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics -alpa-enumerate-strategies=mesh=x:2

func.func @no_role(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{has no 'alpa.role': run alpa-merge-operators before planning}}
  %0 = stablehlo.tanh %x : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @unknown_role(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{has the unknown role "captain"}}
  %0 = stablehlo.tanh %x {alpa.role = "captain"} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @follows_nobody(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{'alpa.follows' names no operand that can be followed}}
  %0 = stablehlo.tanh %x {alpa.role = "follower", alpa.follows = 3 : i64} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
