// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -mlir-print-op-generic | FileCheck %s

// CHECK: "stablehlo.all_gather"{{.*}}all_gather_dim = 0 : i64{{.*}}dense<{{\[\[}}0, 4], [1, 5], [2, 6], [3, 7]]> : tensor<4x2xi64>{{.*}}(tensor<4x16xf32>) -> tensor<8x16xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=4]>} {
  func.func @main(%a: tensor<8x16xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<8x16xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %0 = alpa.reshard %a from <S0R> to <RR> : tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
