// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// A running total of the block, and the totals of the blocks in front of it.

// CHECK-LABEL: func.func @main(%{{.+}}: tensor<4x8xf32>)
// CHECK: %[[OWN:.+]] = "stablehlo.reduce_window"(%arg0, %{{.+}}) <{padding = dense<{{\[\[}}0, 0], [7, 0]]> {{.*}}window_dimensions = array<i64: 1, 8>
// CHECK: %[[LAST:.+]] = stablehlo.slice %[[OWN]] [0:4, 7:8]
// CHECK: %[[ALL:.+]] = "stablehlo.all_gather"(%[[LAST]]) <{all_gather_dim = 1 {{.*}} : (tensor<4x1xf32>) -> tensor<4x2xf32>
// CHECK: stablehlo.compare LT
// CHECK: %[[FRONT:.+]] = stablehlo.select %{{.+}}, %[[ALL]], %{{.+}}
// CHECK: %[[SUM:.+]] = stablehlo.reduce(%[[FRONT]] init: %{{.+}}) across dimensions = [1]
// CHECK: stablehlo.add
// CHECK: %[[EACH:.+]] = stablehlo.broadcast_in_dim %[[SUM]], dims = [0] : (tensor<4xf32>) -> tensor<4x8xf32>
// CHECK: stablehlo.add %[[EACH]], %[[OWN]]
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4x16xf32> {alpa.sharding = #alpa.sharding<RS0>}) -> (tensor<4x16xf32> {alpa.sharding = #alpa.sharding<RS0>}) {
    %zero = stablehlo.constant {alpa.strategy = #alpa.strategy<>, alpa.operands = [], alpa.results = [#alpa.sharding<>]} dense<0.0> : tensor<f32>
    %0 = "stablehlo.reduce_window"(%x, %zero) <{padding = dense<[[0, 0], [15, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 16>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) {alpa.strategy = #alpa.strategy<b=[0]>, alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<>], alpa.results = [#alpa.sharding<RS0>]} : (tensor<4x16xf32>, tensor<f32>) -> tensor<4x16xf32>
    return {alpa.operands = [#alpa.sharding<RS0>], alpa.results = []} %0 : tensor<4x16xf32>
  }
}

// -----

// From each element to the last: the blocks behind it; their totals stand in front.

// CHECK-LABEL: func.func @main(%{{.+}}: tensor<8xf32>)
// CHECK: %[[OWN:.+]] = "stablehlo.reduce_window"(%arg0, %{{.+}}) <{padding = dense<{{\[\[}}0, 7]]> {{.*}}window_dimensions = array<i64: 8>
// CHECK: stablehlo.slice %[[OWN]] [0:1]
// CHECK: stablehlo.compare GT
// CHECK: stablehlo.reduce
// CHECK: stablehlo.maximum %{{.+}}, %[[OWN]]
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<16xf32> {alpa.sharding = #alpa.sharding<S0>}) -> (tensor<16xf32> {alpa.sharding = #alpa.sharding<S0>}) {
    %low = stablehlo.constant {alpa.strategy = #alpa.strategy<>, alpa.operands = [], alpa.results = [#alpa.sharding<>]} dense<0xFF800000> : tensor<f32>
    %0 = "stablehlo.reduce_window"(%x, %low) <{padding = dense<[[0, 15]]> : tensor<1x2xi64>, window_dimensions = array<i64: 16>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.maximum %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) {alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<S0>, #alpa.sharding<>], alpa.results = [#alpa.sharding<S0>]} : (tensor<16xf32>, tensor<f32>) -> tensor<16xf32>
    return {alpa.operands = [#alpa.sharding<S0>], alpa.results = []} %0 : tensor<16xf32>
  }
}
