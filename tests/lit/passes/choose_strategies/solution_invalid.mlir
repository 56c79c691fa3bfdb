// RUN: stablehlo-alpa-opt %s -pass-pipeline='builtin.module(alpa-merge-operators,alpa-choose-strategies{mesh=x:2 solution=0,0})' -verify-diagnostics

// expected-error @below {{solution has 2 entries, the graph has 1 nodes}}
module {
  func.func @main(%x: tensor<32x64xf32>) -> tensor<32x64xf32> {
    %0 = stablehlo.tanh %x : tensor<32x64xf32>
    return %0 : tensor<32x64xf32>
  }
}
