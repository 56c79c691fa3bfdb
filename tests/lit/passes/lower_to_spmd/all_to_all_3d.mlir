// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -mlir-print-op-generic | FileCheck %s

// CHECK: "stablehlo.all_to_all"{{.*}}dense<{{\[\[}}0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>{{.*}}(tensor<8x8xf32>) -> tensor<4x16xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=2, "z"=2]>} {
  func.func @main(%a: tensor<8x16xf32> {alpa.sharding = #alpa.sharding<RS2>}) -> (tensor<8x16xf32> {alpa.sharding = #alpa.sharding<S2R>}) {
    %0 = alpa.reshard %a from <RS2> to <S2R> : tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
