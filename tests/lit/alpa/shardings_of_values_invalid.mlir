// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics

func.func @count(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'alpa.operands' needs one sharding per value, 1 in all}}
  %0 = stablehlo.tanh %a {alpa.operands = []} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @kind(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'alpa.results' entry 0 is no sharding}}
  %0 = stablehlo.tanh %a {alpa.results = [1]} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @rank(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'alpa.results' entry 0 has rank 2, its value has rank 1}}
  %0 = stablehlo.tanh %a {alpa.results = [#alpa.sharding<RR>]} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @axis(%a: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error @below {{'alpa.results' entry 0 uses mesh axis 1, the mesh has 1 axes}}
    %0 = stablehlo.tanh %a {alpa.results = [#alpa.sharding<S1>]} : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=3]>} {
  func.func @divides(%a: tensor<8xf32>) -> tensor<8xf32> {
    // expected-error @below {{does not divide}}
    %0 = stablehlo.tanh %a {alpa.results = [#alpa.sharding<S0>]} : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
