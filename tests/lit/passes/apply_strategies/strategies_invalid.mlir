// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics -alpa-apply-strategies

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @none(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) -> (tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) {
    // expected-error @below {{has no 'alpa.strategy'}}
    %0 = stablehlo.tanh %x {alpa.role = "follower", alpa.follows = 0 : i64} : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @factor(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) -> (tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) {
    // expected-error @below {{strategy #alpa.strategy<b=[0]> names factor b, the rule has 1: #alpa.rule<([a]) -> ([a]) {a=8}}}
    %0 = stablehlo.tanh %x {alpa.role = "leader", alpa.strategy = #alpa.strategy<b=[0]>} : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @set(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) -> (tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) {
    // expected-error @below {{strategy #alpa.strategy<linear(0)=[0]> names linear(0), the rule has 0 such sets}}
    %0 = stablehlo.tanh %x {alpa.role = "leader", alpa.strategy = #alpa.strategy<linear(0)=[0]>} : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @algebraic(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<R>}, %y: tensor<8xf32> {alpa.sharding = #alpa.sharding<R>}) -> (tensor<8xf32> {alpa.sharding = #alpa.sharding<R>}) {
    // expected-error @below {{strategy #alpa.strategy<linear(0)=[0]> names linear(0), which holds for micro-batches only}}
    %0 = stablehlo.multiply %x, %y {alpa.role = "leader", alpa.strategy = #alpa.strategy<linear(0)=[0]>} : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @replicated(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) -> (tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) {
    // expected-error @below {{splits factor a, which is replicated}}
    %0 = stablehlo.custom_call @unknown(%x) {alpa.role = "leader", alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=3]>} {
  func.func @divides(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<R>}) -> (tensor<8xf32> {alpa.sharding = #alpa.sharding<R>}) {
    // expected-error @below {{strategy #alpa.strategy<a=[0]> does not divide its factors into blocks}}
    %0 = stablehlo.tanh %x {alpa.role = "leader", alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  // expected-error @below {{result 0 has no sharding: run alpa-choose-strategies first}}
  func.func @result(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) -> tensor<8xf32> {
    return %x : tensor<8xf32>
  }
}
