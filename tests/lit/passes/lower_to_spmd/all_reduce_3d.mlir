// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -mlir-print-op-generic | FileCheck %s

// CHECK: "stablehlo.all_reduce"{{.*}}dense<{{\[\[}}0, 1, 4, 5], [2, 3, 6, 7]]> : tensor<2x4xi64>
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=2, "z"=2]>} {
  func.func @main(%a: tensor<8x16xf32> {alpa.local = 0 : i64, alpa.sharding = #alpa.sharding<RRP02>}) -> (tensor<8x16xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %0 = alpa.reshard %a from <RRP02> to <RR> : tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
