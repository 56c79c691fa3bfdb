// RUN: stablehlo-alpa-opt %s -alpa-verify-spmd -split-input-file -verify-diagnostics

func.func @operator(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{is left after lowering}}
  %0 = alpa.resolve %a : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @attribute(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{attribute 'alpa.role' is left after lowering}}
  %0 = stablehlo.tanh %a {alpa.role = "leader"} : tensor<8xf32>
  return %0 : tensor<8xf32>
}
