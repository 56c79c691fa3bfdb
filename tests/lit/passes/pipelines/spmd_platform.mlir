// RUN: stablehlo-alpa-opt %s -alpa-spmd-pipeline | FileCheck %s --check-prefixes=CHECK,ANY
// RUN: stablehlo-alpa-opt %s -alpa-spmd-pipeline=platform=cuda | FileCheck %s --check-prefixes=CHECK,ANY
// RUN: stablehlo-alpa-opt %s -alpa-spmd-pipeline=platform=cpu | FileCheck %s --check-prefixes=CHECK,CPU
// RUN: stablehlo-alpa-opt %s -alpa-spmd-pipeline=platform=tpu | FileCheck %s --check-prefixes=CHECK,TPU

// Among forms of equal meaning, the one that the platform's compiler makes most of.

// CHECK-LABEL: @main
// CPU-NEXT: stablehlo.optimization_barrier
// CPU-NEXT: "stablehlo.all_to_all"{{.*}}concat_dimension = 1 : i64{{.*}}(tensor<8x4xf32>) -> tensor<2x16xf32>
// ANY-NEXT: "stablehlo.all_to_all"{{.*}}concat_dimension = 1 : i64{{.*}}(tensor<8x4xf32>) -> tensor<2x16xf32>
// TPU-NEXT: stablehlo.reshape
// TPU-NEXT: "stablehlo.all_to_all"{{.*}}concat_dimension = 0 : i64{{.*}}(tensor<4x2x4xf32>) -> tensor<4x2x4xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=4]>} {
  func.func @main(%a: tensor<8x16xf32> {alpa.sharding = #alpa.sharding<RS1>}) -> (tensor<8x16xf32> {alpa.sharding = #alpa.sharding<S1R>}) {
    %0 = alpa.reshard %a from <RS1> to <S1R> : tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
