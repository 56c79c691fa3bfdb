// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -mlir-print-op-generic | FileCheck %s

// CHECK: "stablehlo.all_gather"{{.*}}all_gather_dim = 0 : i64{{.*}}dense<{{\[\[}}0, 1, 2, 3, 4, 5, 6, 7]]> : tensor<1x8xi64>{{.*}}(tensor<1x16xf32>) -> tensor<8x16xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=8]>} {
  func.func @main(%a: tensor<8x16xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<8x16xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %0 = alpa.reshard %a from <S0R> to <RR> : tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
