// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// Elements that are moved on by one come from the block in front; the first block gets what is padded with.

// CHECK-LABEL: func.func @main(%{{.+}}: tensor<4x8xf32>, %{{.+}}: tensor<f32>)
// CHECK: %[[LAST:.+]] = stablehlo.slice %arg0 [0:4, 7:8]
// CHECK: %[[SENT:.+]] = "stablehlo.collective_permute"(%[[LAST]])
// CHECK: %[[ONE:.+]] = stablehlo.select %{{.+}}, %[[SENT]], %{{.+}} : tensor<i1>, tensor<4x1xf32>
// CHECK: %[[ALL:.+]] = stablehlo.concatenate %[[ONE]], %arg0, dim = 1 : {{.*}} -> tensor<4x9xf32>
// CHECK: stablehlo.pad %[[ALL]], %arg1, low = [0, 0], high = [0, -1], interior = [0, 0]
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4x16xf32> {alpa.sharding = #alpa.sharding<RS0>}, %v: tensor<f32> {alpa.sharding = #alpa.sharding<>}) -> (tensor<4x16xf32> {alpa.sharding = #alpa.sharding<RS0>}) {
    %0 = stablehlo.pad %x, %v, low = [0, 1], high = [0, -1], interior = [0, 0] {alpa.strategy = #alpa.strategy<b=[0]>, alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<>], alpa.results = [#alpa.sharding<RS0>]} : (tensor<4x16xf32>, tensor<f32>) -> tensor<4x16xf32>
    return {alpa.operands = [#alpa.sharding<RS0>], alpa.results = []} %0 : tensor<4x16xf32>
  }
}

// -----

// Moved back by more than a block: two blocks behind are asked.

// CHECK-LABEL: func.func @main(%{{.+}}: tensor<4xi32>, %{{.+}}: tensor<i32>)
// CHECK-COUNT-2: "stablehlo.collective_permute"
// CHECK: stablehlo.concatenate %arg0, %{{.+}}, %{{.+}}, dim = 0 : (tensor<4xi32>, tensor<4xi32>, tensor<2xi32>) -> tensor<10xi32>
// CHECK: stablehlo.pad %{{.+}}, %arg1, low = [-6], high = [0], interior = [0]
module attributes {alpa.mesh = #alpa.mesh<["x"=4]>} {
  func.func @main(%x: tensor<16xi32> {alpa.sharding = #alpa.sharding<S0>}, %v: tensor<i32> {alpa.sharding = #alpa.sharding<>}) -> (tensor<16xi32> {alpa.sharding = #alpa.sharding<S0>}) {
    %0 = stablehlo.pad %x, %v, low = [-6], high = [6], interior = [0] {alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<S0>, #alpa.sharding<>], alpa.results = [#alpa.sharding<S0>]} : (tensor<16xi32>, tensor<i32>) -> tensor<16xi32>
    return {alpa.operands = [#alpa.sharding<S0>], alpa.results = []} %0 : tensor<16xi32>
  }
}
