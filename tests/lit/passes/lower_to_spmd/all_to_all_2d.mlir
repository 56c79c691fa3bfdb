// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -mlir-print-op-generic | FileCheck %s

// CHECK: "stablehlo.all_to_all"{{.*}}concat_dimension = 1 : i64{{.*}}dense<{{\[\[}}0, 1, 2, 3], [4, 5, 6, 7]]> : tensor<2x4xi64>{{.*}}split_count = 4 : i64, split_dimension = 0 : i64{{.*}}(tensor<8x4xf32>) -> tensor<2x16xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=4]>} {
  func.func @main(%a: tensor<8x16xf32> {alpa.sharding = #alpa.sharding<RS1>}) -> (tensor<8x16xf32> {alpa.sharding = #alpa.sharding<S1R>}) {
    %0 = alpa.reshard %a from <RS1> to <S1R> : tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
