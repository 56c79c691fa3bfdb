// RUN: stablehlo-alpa-opt %s -pass-pipeline='builtin.module(alpa-merge-operators,alpa-choose-strategies{mesh=x solution=0})' -verify-diagnostics

// expected-error @below {{mesh axis 'x' is not of the form name:size}}
module {
  func.func @main(%x: tensor<32x64xf32>) -> tensor<32x64xf32> {
    return %x : tensor<32x64xf32>
  }
}
