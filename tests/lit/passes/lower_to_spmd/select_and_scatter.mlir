// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// Three rows of each neighbour and a source of each; behind the ends stand rows that are never selected.

// CHECK-LABEL: func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<2xf32>
// CHECK-DAG: stablehlo.constant dense<0xFF800000>
// CHECK-DAG: %[[ROWS:.+]] = stablehlo.concatenate {{.*}} -> tensor<10xf32>
// CHECK-DAG: %[[SOURCES:.+]] = stablehlo.concatenate {{.*}} -> tensor<4xf32>
// CHECK: %[[ALL:.+]] = "stablehlo.select_and_scatter"(%{{.+}}, %{{.+}}, %arg2) <{window_dimensions = array<i64: 4>, window_strides = array<i64: 2>}>
// CHECK: stablehlo.slice %[[ALL]] [3:7] : (tensor<10xf32>) -> tensor<4xf32>
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

// -----

// Windows that lie side by side need no other row.

// CHECK-LABEL: func.func @main(%arg0: tensor<4xf32>, %arg1: tensor<2xf32>
// CHECK-NOT: collective_permute
// CHECK: "stablehlo.select_and_scatter"(%arg0, %arg1, %arg2) <{{.*}}window_dimensions = array<i64: 2>, window_strides = array<i64: 2>
// CHECK-NOT: stablehlo.slice
// CHECK: return
module attributes {alpa.mesh = #alpa.mesh<["x"=4]>} {
  func.func @main(%x: tensor<16xf32> {alpa.sharding = #alpa.sharding<S0>}, %s: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}, %init: tensor<f32> {alpa.sharding = #alpa.sharding<>}) -> (tensor<16xf32> {alpa.sharding = #alpa.sharding<S0>}) {
    %0 = "stablehlo.select_and_scatter"(%x, %s, %init) <{padding = dense<[[0, 0]]> : tensor<1x2xi64>, window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) {alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<S0>, #alpa.sharding<S0>, #alpa.sharding<>], alpa.results = [#alpa.sharding<S0>]} : (tensor<16xf32>, tensor<8xf32>, tensor<f32>) -> tensor<16xf32>
    return {alpa.operands = [#alpa.sharding<S0>], alpa.results = []} %0 : tensor<16xf32>
  }
}

// -----

// Whole, padding is written out: of what is the least, infinity.

// CHECK-LABEL: func.func @main(%arg0: tensor<16xf32>, %arg1: tensor<8xf32>
// CHECK: %[[MOST:.+]] = stablehlo.constant dense<0x7F800000> : tensor<f32>
// CHECK: %[[ROWS:.+]] = stablehlo.pad %arg0, %[[MOST]], low = [1], high = [1]
// CHECK: %[[ALL:.+]] = "stablehlo.select_and_scatter"(%[[ROWS]], %arg1, %arg2)
// CHECK: stablehlo.slice %[[ALL]] [1:17]
module attributes {alpa.mesh = #alpa.mesh<["x"=4]>} {
  func.func @main(%x: tensor<16xf32> {alpa.sharding = #alpa.sharding<R>}, %s: tensor<8xf32> {alpa.sharding = #alpa.sharding<R>}, %init: tensor<f32> {alpa.sharding = #alpa.sharding<>}) -> (tensor<16xf32> {alpa.sharding = #alpa.sharding<R>}) {
    %0 = "stablehlo.select_and_scatter"(%x, %s, %init) <{padding = dense<[[1, 1]]> : tensor<1x2xi64>, window_dimensions = array<i64: 4>, window_strides = array<i64: 2>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.compare LE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    }, {
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) {alpa.explicit_padding, alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>, #alpa.sharding<>], alpa.results = [#alpa.sharding<R>]} : (tensor<16xf32>, tensor<8xf32>, tensor<f32>) -> tensor<16xf32>
    return {alpa.operands = [#alpa.sharding<R>], alpa.results = []} %0 : tensor<16xf32>
  }
}
