// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics -alpa-verify-plan=micro-batches -o /dev/null

// On the axis of time a value leaves the micro-batches through a join, and is whole behind it.
module attributes {alpa.mesh = #alpa.mesh<["time"=2]>} {
  func.func @main(%x: tensor<8x4xf32> {alpa.batch = 0 : i64, alpa.sharding = #alpa.sharding<S0R>}, %n: tensor<ui32> {alpa.micro_batch = 0 : i64, alpa.sharding = #alpa.sharding<>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %0 = stablehlo.tanh %x {alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8x4xf32>
    %1 = alpa.accumulate %0 {alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<RR>]} : tensor<8x4xf32>
    return %1 : tensor<8x4xf32>
  }
}

// -----

module attributes {alpa.mesh = #alpa.mesh<["time"=2]>} {
  func.func @main(%x: tensor<8x4xf32> {alpa.batch = 0 : i64, alpa.sharding = #alpa.sharding<S0R>}, %n: tensor<ui32> {alpa.micro_batch = 0 : i64, alpa.sharding = #alpa.sharding<>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    // expected-error @below {{joins micro-batches to #alpa.sharding<S0R>, their join is whole}}
    %0 = alpa.accumulate %x {alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>]} : tensor<8x4xf32>
    return %0 : tensor<8x4xf32>
  }
}
