// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// Keys and values go around four devices three times, and what is added to their gradients goes with them, once more:
// it ends where it belongs. The gradient of the queries stays.

// CHECK-LABEL: func.func @main(%{{.+}}: tensor<2x4xf32>
// CHECK: %[[ALONG:.+]] = stablehlo.multiply %arg6, %arg3
// CHECK: stablehlo.reduce(%[[ALONG]]
// CHECK: stablehlo.while
// CHECK-COUNT-4: "stablehlo.collective_permute"
// CHECK-COUNT-2: "stablehlo.collective_permute"(%{{.+}}) <{{.*}}source_target_pairs = dense<{{\[\[}}0, 1], [1, 2], [2, 3], [3, 0]]> : tensor<4x2xi64>}> : (tensor<2x4xf32>) -> tensor<2x4xf32>
// CHECK-NOT: collective_permute
// CHECK: return
module attributes {alpa.mesh = #alpa.mesh<["x"=4]>} {
  func.func @main(%q: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %k: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %v: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %o: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %m: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}, %l: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}, %g: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %dq, %dk, %dv = "alpa.attention_gradient"(%q, %k, %v, %o, %m, %l, %g) <{batch = 0 : i64, block_bytes = 1024 : i64, dims = [], products = [{}, {}, {}, {}, {}], weights = f32}> ({
    ^bb0(%s: tensor<8x8xf32>):
      alpa.yield %s : tensor<8x8xf32>
    }, {
    ^bb0(%s: tensor<8x8xf32>, %p: tensor<8x8xf32>):
      alpa.yield %s : tensor<8x8xf32>
    }) {alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>, #alpa.sharding<S0R>, #alpa.sharding<S0R>, #alpa.sharding<S0>, #alpa.sharding<S0>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>, #alpa.sharding<S0R>, #alpa.sharding<S0R>]} : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>, tensor<8xf32>, tensor<8xf32>, tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>)
    return {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = []} %dq, %dk, %dv : tensor<8x4xf32>, tensor<8x4xf32>, tensor<8x4xf32>
  }
}

// -----

// In blocks of 16 of 32 rows and 16 of 32 keys, with a bias of which each block has its own: 2 gradients of keys and values are
// written where their keys are, and those of the queries where their rows are. Nothing is sent.

// CHECK-LABEL: func.func @main(%{{.+}}: tensor<32x4xf32>
// CHECK: stablehlo.while
// CHECK: stablehlo.while
// CHECK: stablehlo.dynamic_slice %arg7, {{.*}}sizes = [16, 32]
// CHECK: stablehlo.dynamic_slice %{{.+}}, {{.*}}sizes = [16, 16]
// CHECK: stablehlo.compare GE
// CHECK-COUNT-3: stablehlo.dynamic_update_slice {{.*}} (tensor<32x4xf32>, tensor<16x4xf32>,
// CHECK-NOT: collective_permute
// CHECK: return
module attributes {alpa.mesh = #alpa.mesh<["x"=4]>} {
  func.func @main(%q: tensor<32x4xf32> {alpa.sharding = #alpa.sharding<RR>}, %k: tensor<32x4xf32> {alpa.sharding = #alpa.sharding<RR>}, %v: tensor<32x4xf32> {alpa.sharding = #alpa.sharding<RR>}, %o: tensor<32x4xf32> {alpa.sharding = #alpa.sharding<RR>}, %m: tensor<32xf32> {alpa.sharding = #alpa.sharding<R>}, %l: tensor<32xf32> {alpa.sharding = #alpa.sharding<R>}, %g: tensor<32x4xf32> {alpa.sharding = #alpa.sharding<RR>}, %bias: tensor<32x32xf32> {alpa.sharding = #alpa.sharding<RR>}) -> (tensor<32x4xf32> {alpa.sharding = #alpa.sharding<RR>}, tensor<32x4xf32> {alpa.sharding = #alpa.sharding<RR>}, tensor<32x4xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %dq, %dk, %dv = "alpa.attention_gradient"(%q, %k, %v, %o, %m, %l, %g, %bias) <{batch = 0 : i64, block_bytes = 64 : i64, dims = [array<i64: 0, 1>], products = [{}, {}, {}, {}, {}], weights = f32}> ({
    ^bb0(%s: tensor<32x32xf32>, %b: tensor<32x32xf32>):
      %x = stablehlo.add %s, %b : tensor<32x32xf32>
      alpa.yield %x : tensor<32x32xf32>
    }, {
    ^bb0(%s: tensor<32x32xf32>, %p: tensor<32x32xf32>, %b: tensor<32x32xf32>):
      %zero = stablehlo.constant dense<0.0> : tensor<32x32xf32>
      %row = stablehlo.iota dim = 0 : tensor<32x32xi32>
      %column = stablehlo.iota dim = 1 : tensor<32x32xi32>
      %seen = stablehlo.compare GE, %row, %column, SIGNED : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi1>
      %x = stablehlo.select %seen, %s, %zero : tensor<32x32xi1>, tensor<32x32xf32>
      alpa.yield %x : tensor<32x32xf32>
    }) {alpa.strategy = #alpa.strategy<>, alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>, #alpa.sharding<RR>, #alpa.sharding<RR>, #alpa.sharding<R>, #alpa.sharding<R>, #alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>, #alpa.sharding<RR>, #alpa.sharding<RR>]} : (tensor<32x4xf32>, tensor<32x4xf32>, tensor<32x4xf32>, tensor<32x4xf32>, tensor<32xf32>, tensor<32xf32>, tensor<32x4xf32>, tensor<32x32xf32>) -> (tensor<32x4xf32>, tensor<32x4xf32>, tensor<32x4xf32>)
    return {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = []} %dq, %dk, %dv : tensor<32x4xf32>, tensor<32x4xf32>, tensor<32x4xf32>
  }
}
