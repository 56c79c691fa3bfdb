// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics

func.func @rank_of_source(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error @below {{has rank 1, the operand has rank 2}}
  %0 = alpa.reshard %a from <S0> to <RR> : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @rank_of_target(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{has rank 2, the operand has rank 1}}
  %0 = alpa.reshard %a from <S0> to <RR> : tensor<8xf32>
  return %0 : tensor<8xf32>
}
