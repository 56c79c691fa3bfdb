// RUN: stablehlo-alpa-opt %s -alpa-optimize-collectives | FileCheck %s
// RUN: stablehlo-alpa-opt %s -alpa-optimize-collectives=reach=1 | FileCheck %s --check-prefix=NEAR

// What was gathered is not kept for a reshard of another phase, or far behind.
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=2]>} {
  func.func @main(%x: tensor<32x64xf32>) -> (tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>) {
    // CHECK: %[[HALF:.*]] = alpa.reshard %arg0 from <S01R> to <S0R>
    // NEAR: %[[HALF:.*]] = alpa.reshard %arg0 from <S01R> to <S0R>
    %0 = alpa.reshard %x from <S01R> to <S0R> : tensor<32x64xf32>
    %1 = stablehlo.tanh %0 {alpa.phase = 0} : tensor<32x64xf32>
    // CHECK: alpa.reshard %[[HALF]] from <S0R> to <S0S1>
    // NEAR: alpa.reshard %[[HALF]] from <S0R> to <S0S1>
    %2 = alpa.reshard %x from <S01R> to <S0S1> : tensor<32x64xf32>
    %3 = stablehlo.sine %2 {alpa.phase = 0} : tensor<32x64xf32>
    // CHECK: %[[ALL:.*]] = alpa.reshard %[[HALF]] from <S0R> to <RR>
    // NEAR: %[[ALL:.*]] = alpa.reshard %arg0 from <S01R> to <RR>
    %4 = alpa.reshard %x from <S01R> to <RR> : tensor<32x64xf32>
    %5 = stablehlo.cosine %4 {alpa.phase = 0} : tensor<32x64xf32>
    // CHECK: alpa.reshard %[[ALL]] from <RR> to <RS0>
    // NEAR: alpa.reshard %[[ALL]] from <RR> to <RS0>
    %6 = alpa.reshard %x from <S01R> to <RS0> : tensor<32x64xf32>
    %7 = stablehlo.cosine %6 {alpa.phase = 0} : tensor<32x64xf32>
    // CHECK: alpa.reshard %arg0 from <S01R> to <RR>
    // NEAR: alpa.reshard %arg0 from <S01R> to <RR>
    %8 = alpa.reshard %x from <S01R> to <RR> : tensor<32x64xf32>
    %9 = stablehlo.cosine %8 {alpa.phase = 1} : tensor<32x64xf32>
    return %1, %3, %5, %7, %9 : tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>, tensor<32x64xf32>
  }
}
