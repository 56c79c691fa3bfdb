// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -mlir-print-op-generic | FileCheck %s

// CHECK: "stablehlo.partition_id"
// CHECK: "stablehlo.dynamic_slice"{{.*}}slice_sizes = array<i64: 2, 16>
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=4]>} {
  func.func @main(%a: tensor<8x16xf32> {alpa.sharding = #alpa.sharding<RR>}) -> (tensor<8x16xf32> {alpa.sharding = #alpa.sharding<S1R>}) {
    %0 = alpa.reshard %a from <RR> to <S1R> : tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
