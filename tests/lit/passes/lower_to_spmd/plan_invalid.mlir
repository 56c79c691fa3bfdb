// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics -allow-unregistered-dialect -alpa-lower-to-spmd

// expected-error @below {{has no 'alpa.mesh': run alpa-choose-strategies first}}
module {
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    return %x : tensor<8xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  // expected-error @below {{argument 0 has no sharding: run alpa-apply-strategies first}}
  func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    return %x : tensor<8xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) -> tensor<8xf32> {
    // expected-error @below {{has no shardings: run alpa-apply-strategies first}}
    %0 = stablehlo.tanh %x : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) -> tensor<8xf32> {
    // expected-error @below {{operand 0 arrives as #alpa.sharding<S0> and is needed as #alpa.sharding<R>: run alpa-insert-reshards first}}
    %0 = stablehlo.tanh %x {alpa.operands = [#alpa.sharding<R>], alpa.results = [#alpa.sharding<R>]} : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) -> tensor<8xf32> {
    // expected-error @below {{has no sharding rule and cannot be split as #alpa.sharding<S0>}}
    %0 = "other.op"(%x) {alpa.operands = [#alpa.sharding<S0>], alpa.results = [#alpa.sharding<S0>]} : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
