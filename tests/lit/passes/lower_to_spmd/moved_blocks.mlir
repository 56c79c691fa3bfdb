// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// The first half over four devices: the first one keeps half of its block and
// sends the other half; the second one sends both of its halves.

// CHECK: func.func @main(%{{.*}}: tensor<2xf32>) -> tensor<1xf32>
// CHECK: "stablehlo.collective_permute"{{.*}}dense<{{\[}}[0, 1], [1, 2]]>{{.*}}(tensor<1xf32>) -> tensor<1xf32>
// CHECK: "stablehlo.collective_permute"{{.*}}dense<{{\[}}[1, 3]]>{{.*}}(tensor<1xf32>) -> tensor<1xf32>
// CHECK-NOT: collective_permute
// CHECK-NOT: all_gather
module attributes {alpa.mesh = #alpa.mesh<["x"=4]>} {
  func.func @main(%a: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) -> (tensor<4xf32> {alpa.sharding = #alpa.sharding<S0>}) {
    %0 = stablehlo.slice %a [0:4] {alpa.operands = [#alpa.sharding<S0>], alpa.results = [#alpa.sharding<S0>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<8xf32>) -> tensor<4xf32>
    return {alpa.operands = [#alpa.sharding<S0>], alpa.results = []} %0 : tensor<4xf32>
  }
}

// -----

// What is turned round within its block goes to the block at the other end.

// CHECK: %[[TURNED:[0-9]+]] = stablehlo.reverse %{{.*}}, dims = [0] : tensor<2xf32>
// CHECK: "stablehlo.collective_permute"(%[[TURNED]]){{.*}}dense<{{\[}}[0, 3], [1, 2], [2, 1], [3, 0]]>
module attributes {alpa.mesh = #alpa.mesh<["x"=4]>} {
  func.func @main(%a: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) -> (tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) {
    %0 = stablehlo.reverse %a, dims = [0] {alpa.operands = [#alpa.sharding<S0>], alpa.results = [#alpa.sharding<S0>], alpa.strategy = #alpa.strategy<a=[0]>} : tensor<8xf32>
    return {alpa.operands = [#alpa.sharding<S0>], alpa.results = []} %0 : tensor<8xf32>
  }
}

// -----

// Both halves of what is joined are sent to two devices each; padding is
// written where nothing comes to lie.

// CHECK: "stablehlo.collective_permute"{{.*}}(tensor<4xf32>) -> tensor<4xf32>
// CHECK: "stablehlo.collective_permute"{{.*}}(tensor<4xf32>) -> tensor<4xf32>
// CHECK-NOT: all_gather
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%a: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}, %b: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) -> (tensor<16xf32> {alpa.sharding = #alpa.sharding<S0>}) {
    %0 = stablehlo.concatenate %a, %b, dim = 0 {alpa.operands = [#alpa.sharding<S0>, #alpa.sharding<S0>], alpa.results = [#alpa.sharding<S0>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<8xf32>, tensor<8xf32>) -> tensor<16xf32>
    return {alpa.operands = [#alpa.sharding<S0>], alpa.results = []} %0 : tensor<16xf32>
  }
}
