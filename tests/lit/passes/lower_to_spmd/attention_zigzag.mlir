// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// Under a causal mask the device with number i of four takes, of eight halves of blocks, those with numbers i and 7 - i: halves
// with even numbers go to all devices, and so do those with odd ones. What is masked as a whole is left out.

// CHECK-LABEL: func.func @causal
// CHECK: %[[NUMBER:.+]] = stablehlo.divide %{{.+}}, %{{.+}} : tensor<i32>
// CHECK: %[[ODD:.+]] = stablehlo.and %[[NUMBER]]
// CHECK: %[[PLACE:.+]] = stablehlo.multiply %[[ODD]]
// CHECK: %[[OTHER:.+]] = stablehlo.subtract %{{.+}}, %[[PLACE]]
// CHECK: stablehlo.dynamic_slice %arg0, {{.*}}sizes = [4, 4]
// CHECK: %[[EVENS:.+]] = "stablehlo.collective_permute"({{.*}}source_target_pairs = dense<{{\[\[}}0, 0], [1, 2], [2, 3], [3, 1]]>
// CHECK: stablehlo.dynamic_update_slice %arg0, %[[EVENS]], %[[PLACE]],
// CHECK: %[[ODDS:.+]] = "stablehlo.collective_permute"({{.*}}source_target_pairs = dense<{{\[\[}}0, 1], [1, 3], [2, 2], [3, 0]]>
// CHECK: stablehlo.dynamic_update_slice %{{.+}}, %[[ODDS]], %[[OTHER]],
// CHECK-COUNT-4: "stablehlo.collective_permute"({{.*}}(tensor<4x4xf32>) -> tensor<4x4xf32>
// Keys and values go around as before.
// CHECK: stablehlo.while
// CHECK-COUNT-2: "stablehlo.collective_permute"({{.*}}(tensor<8x4xf32>) -> tensor<8x4xf32>
// A half begins where it stands in the whole sequence.
// CHECK: %[[FRONT:.+]] = stablehlo.divide %{{.+}}, %{{.+}} : tensor<i32>
// CHECK: %[[BACK:.+]] = stablehlo.subtract %{{.+}}, %[[FRONT]]
// CHECK: stablehlo.select %{{.+}}, %[[FRONT]], %[[BACK]]
// CHECK: "stablehlo.if"
// CHECK: %[[OUT:.+]] = stablehlo.divide %{{.+}}, %{{.+}} : tensor<8x4xf32>
// CHECK: stablehlo.dynamic_slice %[[OUT]], %[[PLACE]],
// CHECK: "stablehlo.collective_permute"({{.*}}source_target_pairs = dense<{{\[\[}}0, 0], [1, 3], [2, 1], [3, 2]]>
// CHECK: stablehlo.dynamic_slice %[[OUT]], %[[OTHER]],
// CHECK: "stablehlo.collective_permute"({{.*}}source_target_pairs = dense<{{\[\[}}0, 3], [1, 0], [2, 2], [3, 1]]>
module attributes {alpa.mesh = #alpa.mesh<["x"=4]>} {
  func.func @causal(%q: tensor<32x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %k: tensor<32x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %v: tensor<32x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<32x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %o, %m, %l = "alpa.attention"(%q, %k, %v) <{batch = 0 : i64, block_bytes = 1024 : i64, dims = [], products = [{}, {}], weights = f32}> ({
    ^bb0(%s: tensor<32x32xf32>):
      %low = stablehlo.constant dense<0xFF800000> : tensor<32x32xf32>
      %row = stablehlo.iota dim = 0 : tensor<32x32xi32>
      %column = stablehlo.iota dim = 1 : tensor<32x32xi32>
      %seen = stablehlo.compare GE, %row, %column, SIGNED : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi1>
      %x = stablehlo.select %seen, %s, %low : tensor<32x32xi1>, tensor<32x32xf32>
      alpa.yield %x : tensor<32x32xf32>
    }) {alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>, #alpa.sharding<S0>, #alpa.sharding<S0>]} : (tensor<32x4xf32>, tensor<32x4xf32>, tensor<32x4xf32>) -> (tensor<32x4xf32>, tensor<32xf32>, tensor<32xf32>)
    return {alpa.operands = [#alpa.sharding<S0R>], alpa.results = []} %o : tensor<32x4xf32>
  }
}

// -----

// A bias of every score stays where it is, and so does everything else.

// CHECK-LABEL: func.func @biased
// CHECK-NOT: tensor<4x4xf32>
// CHECK-NOT: stablehlo.if
module attributes {alpa.mesh = #alpa.mesh<["x"=4]>} {
  func.func @biased(%q: tensor<32x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %k: tensor<32x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %v: tensor<32x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %b: tensor<32x32xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<32x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %o, %m, %l = "alpa.attention"(%q, %k, %v, %b) <{batch = 0 : i64, block_bytes = 1024 : i64, dims = [array<i64: 0, 1>], products = [{}, {}], weights = f32}> ({
    ^bb0(%s: tensor<32x32xf32>, %bias: tensor<32x32xf32>):
      %low = stablehlo.constant dense<0xFF800000> : tensor<32x32xf32>
      %row = stablehlo.iota dim = 0 : tensor<32x32xi32>
      %column = stablehlo.iota dim = 1 : tensor<32x32xi32>
      %seen = stablehlo.compare GE, %row, %column, SIGNED : (tensor<32x32xi32>, tensor<32x32xi32>) -> tensor<32x32xi1>
      %sum = stablehlo.add %s, %bias : tensor<32x32xf32>
      %x = stablehlo.select %seen, %sum, %low : tensor<32x32xi1>, tensor<32x32xf32>
      alpa.yield %x : tensor<32x32xf32>
    }) {alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>, #alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<S0R>, #alpa.sharding<S0>, #alpa.sharding<S0>]} : (tensor<32x4xf32>, tensor<32x4xf32>, tensor<32x4xf32>, tensor<32x32xf32>) -> (tensor<32x4xf32>, tensor<32xf32>, tensor<32xf32>)
    return {alpa.operands = [#alpa.sharding<S0R>], alpa.results = []} %o : tensor<32x4xf32>
  }
}
