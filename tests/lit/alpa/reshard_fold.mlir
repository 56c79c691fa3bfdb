// RUN: stablehlo-alpa-opt %s -canonicalize | FileCheck %s

// CHECK-LABEL: @to_itself
func.func @to_itself(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK-NOT: alpa.reshard
  %0 = alpa.reshard %a from <S0R> to <S0R> : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// CHECK-LABEL: @to_another
func.func @to_another(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK: alpa.reshard
  %0 = alpa.reshard %a from <S0R> to <RR> : tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
