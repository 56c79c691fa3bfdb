// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -mlir-print-op-generic | FileCheck %s

// CHECK: "stablehlo.all_gather"{{.*}}all_gather_dim = 1 : i64{{.*}}dense<{{\[\[}}0, 2], [1, 3], [4, 6], [5, 7]]> : tensor<4x2xi64>{{.*}}(tensor<8x8xf32>) -> tensor<8x16xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=2, "z"=2]>} {
  func.func @main(%a: tensor<8x16xf32> {alpa.sharding = #alpa.sharding<RS1>}) -> (tensor<8x16xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %0 = alpa.reshard %a from <RS1> to <RR> : tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
