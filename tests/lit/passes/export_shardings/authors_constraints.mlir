// RUN: stablehlo-alpa-opt %s -pass-pipeline='builtin.module(alpa-export-shardings{form=shardy})' -allow-unregistered-dialect | FileCheck %s

// What the author asked for is a part of the plan: it is written as everything else is.
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=2]>} {
  // CHECK-LABEL: func.func @main
  func.func @main(%x: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S1R>}) {
    // CHECK: %[[X:.*]] = "sdy.sharding_constraint"(%{{.*}}) {{.*}}[{"x"}, {}]>
    // CHECK: %[[C:.*]] = "sdy.sharding_constraint"(%[[X]]) {{.*}}[{"y"}, {}]>
    // CHECK-NOT: alpa.constrain
    %0 = alpa.reshard %x from <S0R> to <S1R> : tensor<8x4xf32>
    %1 = alpa.constrain %0 [["y"], []] {alpa.operands = [#alpa.sharding<S1R>], alpa.results = [#alpa.sharding<S1R>], alpa.strategy = #alpa.strategy<a=[1]>} : tensor<8x4xf32>
    // CHECK: return %[[C]]
    return %1 : tensor<8x4xf32>
  }
}
