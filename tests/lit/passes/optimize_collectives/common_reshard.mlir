// RUN: stablehlo-alpa-opt %s -alpa-optimize-collectives | FileCheck %s

// After the all-reduce a slice is free.
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<32x64xf32>) -> (tensor<32x64xf32>, tensor<32x64xf32>) {
    // CHECK: %[[SUM:.*]] = alpa.reshard %{{.*}} from <RRP0> to <RR>
    %0 = alpa.reshard %x from <RRP0> to <RR> : tensor<32x64xf32>
    // CHECK: alpa.reshard %[[SUM]] from <RR> to <S0R>
    %1 = alpa.reshard %x from <RRP0> to <S0R> : tensor<32x64xf32>
    return %0, %1 : tensor<32x64xf32>, tensor<32x64xf32>
  }
}
