// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd | FileCheck %s

// What is split lies behind what is joined: the blocks are brought to the front, and come back where they join.

// CHECK: stablehlo.reshape %{{.+}} : (tensor<4x3x16xf32>) -> tensor<4x3x2x8xf32>
// CHECK-NEXT: stablehlo.transpose %{{.+}}, dims = [2, 0, 1, 3] : (tensor<4x3x2x8xf32>) -> tensor<2x4x3x8xf32>
// CHECK-NEXT: "stablehlo.all_to_all"{{.*}}dense<{{\[\[}}0, 1], [2, 3], [4, 5], [6, 7]]> : tensor<4x2xi64>{{.*}}(tensor<2x4x3x8xf32>) -> tensor<2x4x3x8xf32>
// CHECK-NEXT: stablehlo.transpose %{{.+}}, dims = [1, 0, 2, 3] : (tensor<2x4x3x8xf32>) -> tensor<4x2x3x8xf32>
// CHECK-NEXT: stablehlo.reshape %{{.+}} : (tensor<4x2x3x8xf32>) -> tensor<4x6x8xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=2, "z"=2]>} {
  func.func @main(%a: tensor<4x6x16xf32> {alpa.sharding = #alpa.sharding<RS2R>}) -> (tensor<4x6x16xf32> {alpa.sharding = #alpa.sharding<RRS2>}) {
    %0 = alpa.reshard %a from <RS2R> to <RRS2> : tensor<4x6x16xf32>
    return %0 : tensor<4x6x16xf32>
  }
}
