// RUN: stablehlo-alpa-opt %s -pass-pipeline='builtin.module(alpa-merge-operators,alpa-choose-strategies{mesh=x:2 solution=99})' -verify-diagnostics

// expected-error @below {{solution chooses strategy 99 of node 0}}
module {
  func.func @main(%x: tensor<32x64xf32>) -> tensor<32x64xf32> {
    %0 = stablehlo.tanh %x : tensor<32x64xf32>
    return %0 : tensor<32x64xf32>
  }
}
