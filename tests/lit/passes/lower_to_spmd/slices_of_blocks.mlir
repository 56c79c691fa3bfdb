// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// One row of split rows: every device takes one of its rows, which counts where it is the one.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<4x4xf32>)
// CHECK: %[[ROW:[0-9]+]] = stablehlo.dynamic_slice %[[ARG0]], {{.*}}, sizes = [1, 4]
// CHECK: %[[FOUND:[0-9]+]] = stablehlo.select {{.*}}, %[[ROW]]
// CHECK-NOT: all_gather
// CHECK: "stablehlo.all_reduce"(%[[FOUND]])
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<1x4xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %0 = stablehlo.slice %x [5:6, 0:4] {alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<8x4xf32>) -> tensor<1x4xf32>
    %1 = alpa.reshard %0 from <RRP0> to <RR> : tensor<1x4xf32>
    return {alpa.operands = [#alpa.sharding<RR>], alpa.results = []} %1 : tensor<1x4xf32>
  }
}

// -----

// Rows over the border of two blocks: what a device has of them goes to its place among zeros.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<4x4xf32>, %[[ARG1:[a-z0-9]+]]: tensor<i32>)
// CHECK: %[[ROWS:[0-9]+]] = stablehlo.dynamic_slice %[[ARG0]], {{.*}}, sizes = [3, 4]
// CHECK: %[[FOUND:[0-9]+]] = stablehlo.select {{.*}}, %[[ROWS]]
// CHECK: %[[PLACED:[0-9]+]] = stablehlo.dynamic_update_slice {{.*}}, %[[FOUND]], {{.*}} : (tensor<9x4xf32>, tensor<3x4xf32>
// CHECK: stablehlo.slice %[[PLACED]] [3:6, 0:4]
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %i: tensor<i32> {alpa.sharding = #alpa.sharding<>}) -> (tensor<3x4xf32> {alpa.local = 0 : i64, alpa.sharding = #alpa.sharding<RRP0>}) {
    %0 = stablehlo.dynamic_slice %x, %i, %i, sizes = [3, 4] {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<>, #alpa.sharding<>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<3x4xf32>
    return {alpa.operands = [#alpa.sharding<RRP0>], alpa.results = []} %0 : tensor<3x4xf32>
  }
}

// -----

// An update of split rows: devices write what they have of them, and write back what they had elsewhere.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<4x4xf32>, %[[ARG1:[a-z0-9]+]]: tensor<1x4xf32>, %[[ARG2:[a-z0-9]+]]: tensor<i32>)
// CHECK: %[[OLD:[0-9]+]] = stablehlo.dynamic_slice %[[ARG0]], %[[START:[0-9]+]], {{.*}}, sizes = [1, 4]
// CHECK: %[[NEW:[0-9]+]] = stablehlo.select {{.*}}, %[[ARG1]], %[[OLD]]
// CHECK: %[[DONE:[0-9]+]] = stablehlo.dynamic_update_slice %[[ARG0]], %[[NEW]], %[[START]]
// CHECK: return %[[DONE]]
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %u: tensor<1x4xf32> {alpa.sharding = #alpa.sharding<RR>}, %i: tensor<i32> {alpa.sharding = #alpa.sharding<>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = stablehlo.dynamic_update_slice %x, %u, %i, %i {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<RR>, #alpa.sharding<>, #alpa.sharding<>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<8x4xf32>, tensor<1x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x4xf32>
    return {alpa.operands = [#alpa.sharding<S0R>], alpa.results = []} %0 : tensor<8x4xf32>
  }
}

// -----

// One row among many, as in the gradient of a slice: devices make their rows of the padding value, and write the one.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<1x4xf32>, %[[ARG1:[a-z0-9]+]]: tensor<f32>)
// CHECK: %[[BLOCK:[0-9]+]] = stablehlo.broadcast_in_dim %[[ARG1]], dims = [] : (tensor<f32>) -> tensor<4x4xf32>
// CHECK: %[[NEW:[0-9]+]] = stablehlo.select {{.*}} : tensor<1x4xi1>, tensor<1x4xf32>
// CHECK: %[[DONE:[0-9]+]] = stablehlo.dynamic_update_slice %[[BLOCK]], %[[NEW]]
// CHECK: return %[[DONE]]
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<1x4xf32> {alpa.sharding = #alpa.sharding<RR>}, %v: tensor<f32> {alpa.sharding = #alpa.sharding<>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = stablehlo.pad %x, %v, low = [5, 0], high = [2, 0], interior = [0, 0] {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<1x4xf32>, tensor<f32>) -> tensor<8x4xf32>
    return {alpa.operands = [#alpa.sharding<S0R>], alpa.results = []} %0 : tensor<8x4xf32>
  }
}
