// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// Column split, then row split: the first product needs nothing, the second a sum.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<4x8xf32>, %[[ARG1:[a-z0-9]+]]: tensor<8x8xf32>, %[[ARG2:[a-z0-9]+]]: tensor<8x8xf32>) -> tensor<4x8xf32>
// CHECK: [[V0:%[a-z0-9_]+]] = stablehlo.dot_general %[[ARG0]], %[[ARG1]], contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
// CHECK: [[V1:%[a-z0-9_]+]] = stablehlo.dot_general [[V0]], %[[ARG2]], contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
// CHECK: [[V2:%[a-z0-9_]+]] = "stablehlo.all_reduce"([[V1]]) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> (
// CHECK: {{\^bb[0-9]+}}({{%[a-z0-9]+}}: tensor<f32>, {{%[a-z0-9]+}}: tensor<f32>):
// CHECK: [[V3:%[a-z0-9_]+]] = stablehlo.add {{%[a-z0-9]+}}, {{%[a-z0-9]+}} : tensor<f32>
// CHECK: stablehlo.return [[V3]] : tensor<f32>
// CHECK: }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
// CHECK: return [[V2]] : tensor<4x8xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RR>}, %up: tensor<8x16xf32> {alpa.sharding = #alpa.sharding<RS0>}, %down: tensor<16x8xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %0 = stablehlo.dot_general %x, %up, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RS0>], alpa.results = [#alpa.sharding<RS0>], alpa.strategy = #alpa.strategy<b=[0]>} : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %1 = stablehlo.dot_general %0, %down, contracting_dims = [1] x [0] {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<c=[0]>} : (tensor<4x16xf32>, tensor<16x8xf32>) -> tensor<4x8xf32>
    %2 = alpa.reshard %1 from <RRP0> to <RR> : tensor<4x8xf32>
    return {alpa.operands = [#alpa.sharding<RR>], alpa.results = []} %2 : tensor<4x8xf32>
  }
}
