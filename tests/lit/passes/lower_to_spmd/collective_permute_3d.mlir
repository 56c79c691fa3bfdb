// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -mlir-print-op-generic | FileCheck %s

// CHECK: "stablehlo.collective_permute"{{.*}}source_target_pairs = dense<{{.*}}> : tensor<8x2xi64>{{.*}}(tensor<4x16xf32>) -> tensor<4x16xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=2, "z"=2]>} {
  func.func @main(%a: tensor<8x16xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<8x16xf32> {alpa.sharding = #alpa.sharding<S1R>}) {
    %0 = alpa.reshard %a from <S0R> to <S1R> : tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
