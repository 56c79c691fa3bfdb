// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// Keys and values go around four devices: three times, each by one device, while the scores of those that are there are made.

// CHECK-LABEL: func.func @main(%{{.+}}: tensor<2x4xf32>, %{{.+}}: tensor<2x4xf32>, %{{.+}}: tensor<2x4xf32>)
// CHECK: stablehlo.while
// CHECK-DAG: "stablehlo.collective_permute"(%{{.+}}) <{{.*}}source_target_pairs = dense<{{\[\[}}0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>}> : (tensor<2x4xf32>) -> tensor<2x4xf32>
// CHECK-DAG: stablehlo.dot_general %arg0, %{{.+}}, contracting_dims = [1] x [1] : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x2xf32>
// CHECK: stablehlo.dot_general %arg0, %{{.+}}, contracting_dims = [1] x [1] : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<2x2xf32>
// CHECK-NOT: collective_permute
// CHECK: %[[OUT:.+]] = stablehlo.divide %{{.+}}, %{{.+}} : tensor<2x4xf32>
// CHECK: return %[[OUT]]
module attributes {alpa.mesh = #alpa.mesh<["x"=4]>} {
  func.func @main(%q: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %k: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %v: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %o, %m, %l = "alpa.attention"(%q, %k, %v) <{batch = 0 : i64, block_bytes = 1024 : i64, dims = [], products = [{}, {}], weights = f32}> ({
    ^bb0(%s: tensor<8x8xf32>):
      alpa.yield %s : tensor<8x8xf32>
    }) {alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>, #alpa.sharding<S0>, #alpa.sharding<S0>]} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8xf32>, tensor<8xf32>)
    return {alpa.operands = [#alpa.sharding<S0R>], alpa.results = []} %o : tensor<8x4xf32>
  }
}

// -----

// On a whole sequence blocks of 16 rows and 16 keys are taken in turn; places in a mask are those among all. A block of which
// nothing is seen is left out, where its rows have seen scores that leave nothing of it and its values are finite.

// CHECK-LABEL: func.func @main(%{{.+}}: tensor<32x4xf32>
// CHECK-DAG: %[[TWO:.+]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK: stablehlo.while
// CHECK: stablehlo.compare LT, %{{.+}}, %[[TWO]]
// CHECK: stablehlo.dynamic_slice %arg0, {{.*}}sizes = [16, 4]
// CHECK: stablehlo.while
// CHECK: stablehlo.compare LT, %{{.+}}, %[[TWO]]
// CHECK: stablehlo.dynamic_slice %arg1, {{.*}}sizes = [16, 4]
// CHECK: %[[ROWS:.+]] = stablehlo.iota dim = 0 : tensor<16x16xi32>
// CHECK: stablehlo.add %[[ROWS]], %{{.+}} : tensor<16x16xi32>
// CHECK: %[[KEYS:.+]] = stablehlo.iota dim = 1 : tensor<16x16xi32>
// CHECK: stablehlo.add %[[KEYS]], %{{.+}} : tensor<16x16xi32>
// CHECK: %[[SEEN:.+]] = stablehlo.compare GE
// CHECK: stablehlo.reduce(%[[SEEN]] {{.*}} applies stablehlo.or across dimensions = [0, 1]
// CHECK: stablehlo.reduce({{.*}} applies stablehlo.minimum across dimensions = [0] : (tensor<16xf32>
// CHECK: stablehlo.compare GT
// CHECK: %[[LOW:.+]] = stablehlo.and
// CHECK: %[[DONE:.+]] = stablehlo.and %[[LOW]], %{{.+}}
// CHECK-NEXT: %{{.+}} = "stablehlo.if"(%[[DONE]]) ({
// CHECK-NEXT: stablehlo.return %{{.+}}, %{{.+}}, %{{.+}} : tensor<16xf32>, tensor<16xf32>, tensor<16x4xf32>
// CHECK: stablehlo.dot_general
// CHECK: stablehlo.dynamic_update_slice
// CHECK-NOT: collective_permute
module attributes {alpa.mesh = #alpa.mesh<["x"=4]>} {
  func.func @main(%q: tensor<32x4xf32> {alpa.sharding = #alpa.sharding<RR>}, %k: tensor<32x4xf32> {alpa.sharding = #alpa.sharding<RR>}, %v: tensor<32x4xf32> {alpa.sharding = #alpa.sharding<RR>}) -> (tensor<32x4xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %o, %m, %l = "alpa.attention"(%q, %k, %v) <{batch = 0 : i64, block_bytes = 64 : i64, dims = [], products = [{}, {}], weights = f32}> ({
    ^bb0(%s: tensor<32x32xf32>):
      %low = stablehlo.constant dense<0xFF800000> : tensor<32x32xf32>
      %row = stablehlo.iota dim = 0 : tensor<32x32xi32>
      %column = stablehlo.iota dim = 1 : tensor<32x32xi32>
      %seen = stablehlo.compare GE, %row, %column, SIGNED : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi1>
      %x = stablehlo.select %seen, %s, %low : tensor<32x32xi1>, tensor<32x32xf32>
      alpa.yield %x : tensor<32x32xf32>
    }) {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>, #alpa.sharding<R>, #alpa.sharding<R>]} : (tensor<32x4xf32>, tensor<32x4xf32>, tensor<32x4xf32>) -> (tensor<32x4xf32>, tensor<32xf32>, tensor<32xf32>)
    return {alpa.operands = [#alpa.sharding<RR>], alpa.results = []} %o : tensor<32x4xf32>
  }
}
