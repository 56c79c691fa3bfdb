// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -mlir-print-op-generic | FileCheck %s

// CHECK: "stablehlo.all_reduce"{{.*}}dense<{{\[\[}}0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>
// CHECK: "stablehlo.add"
// CHECK: (tensor<8x16xf32>) -> tensor<8x16xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=4]>} {
  func.func @main(%a: tensor<8x16xf32> {alpa.local = 0 : i64, alpa.sharding = #alpa.sharding<RRP1>}) -> (tensor<8x16xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %0 = alpa.reshard %a from <RRP1> to <RR> : tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
