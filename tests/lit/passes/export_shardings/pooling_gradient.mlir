// RUN: stablehlo-alpa-opt %s -alpa-export-shardings -canonicalize -allow-unregistered-dialect | FileCheck %s

// Padding that only our lowering knows how to fill is written out for XLA's partitioners.

// CHECK-LABEL: func.func
// CHECK: %[[LEAST:.+]] = stablehlo.constant dense<0xFF800000> : tensor<f32>
// CHECK: %[[ROWS:.+]] = stablehlo.pad %{{.+}}, %[[LEAST]], low = [1], high = [1]
// CHECK: %[[ALL:.+]] = "stablehlo.select_and_scatter"(%[[ROWS]],
// CHECK-NOT: alpa.explicit_padding
// CHECK: stablehlo.slice %[[ALL]] [1:17]
module attributes {alpa.mesh = #alpa.mesh<["x"=4]>} {
  func.func @main(%x: tensor<16xf32> {alpa.sharding = #alpa.sharding<S0>}, %s: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}, %init: tensor<f32> {alpa.sharding = #alpa.sharding<>}) -> (tensor<16xf32> {alpa.sharding = #alpa.sharding<S0>}) {
    %0 = "stablehlo.select_and_scatter"(%x, %s, %init) <{padding = dense<[[1, 1]]> : tensor<1x2xi64>, window_dimensions = array<i64: 4>, window_strides = array<i64: 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) {alpa.explicit_padding, alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<S0>, #alpa.sharding<S0>, #alpa.sharding<>], alpa.results = [#alpa.sharding<S0>]} : (tensor<16xf32>, tensor<8xf32>, tensor<f32>) -> tensor<16xf32>
    return {alpa.operands = [#alpa.sharding<S0>], alpa.results = []} %0 : tensor<16xf32>
  }
}
