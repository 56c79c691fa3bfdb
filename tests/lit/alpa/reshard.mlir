// RUN: stablehlo-alpa-opt %s | stablehlo-alpa-opt | FileCheck %s

func.func @reshard(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK: alpa.reshard %{{.*}} from <S0R> to <RS0> : tensor<8x4xf32>
  %0 = alpa.reshard %a from <S0R> to <RS0> : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
