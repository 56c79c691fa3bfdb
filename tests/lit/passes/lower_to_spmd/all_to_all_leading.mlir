// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd | FileCheck %s

// Blocks that are joined along the first dimension lie there already.

// CHECK: stablehlo.reshape %{{.+}} : (tensor<2x16xf32>) -> tensor<2x4x4xf32>
// CHECK-NEXT: stablehlo.transpose %{{.+}}, dims = [1, 0, 2] : (tensor<2x4x4xf32>) -> tensor<4x2x4xf32>
// CHECK-NEXT: "stablehlo.all_to_all"
// CHECK-NEXT: stablehlo.reshape %{{.+}} : (tensor<4x2x4xf32>) -> tensor<8x4xf32>
// CHECK-NEXT: return
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=4]>} {
  func.func @main(%a: tensor<8x16xf32> {alpa.sharding = #alpa.sharding<S1R>}) -> (tensor<8x16xf32> {alpa.sharding = #alpa.sharding<RS1>}) {
    %0 = alpa.reshard %a from <S1R> to <RS1> : tensor<8x16xf32>
    return %0 : tensor<8x16xf32>
  }
}
