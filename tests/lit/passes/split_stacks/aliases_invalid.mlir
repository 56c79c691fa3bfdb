// RUN: stablehlo-alpa-opt %s -pass-pipeline='builtin.module(alpa-split-stacks{aliases=0:1})' -verify-diagnostics

// expected-error @+1 {{'func.func' op alias '0:1' names no argument and result of the 1 and 1}}
func.func @main(%w: tensor<4x8xf32>) -> tensor<4x8xf32> {
  return %w : tensor<4x8xf32>
}
