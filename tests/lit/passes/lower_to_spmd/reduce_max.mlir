// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// The maximum over a split dimension: each device's own, then an all-reduce with the same body.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<4x4xf32>) -> tensor<4xf32>
// CHECK: [[CST:%[a-z0-9_]+]] = stablehlo.constant dense<0xFF800000> : tensor<f32>
// CHECK: [[V0:%[a-z0-9_]+]] = stablehlo.reduce(%[[ARG0]] init: [[CST]]) applies stablehlo.maximum across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: [[V1:%[a-z0-9_]+]] = "stablehlo.all_reduce"([[V0]]) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> (
// CHECK: {{\^bb[0-9]+}}({{%[a-z0-9]+}}: tensor<f32>, {{%[a-z0-9]+}}: tensor<f32>):
// CHECK: [[V2:%[a-z0-9_]+]] = stablehlo.maximum {{%[a-z0-9]+}}, {{%[a-z0-9]+}} : tensor<f32>
// CHECK: stablehlo.return [[V2]] : tensor<f32>
// CHECK: }) : (tensor<4xf32>) -> tensor<4xf32>
// CHECK: return [[V1]] : tensor<4xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RS0>}) -> (tensor<4xf32> {alpa.sharding = #alpa.sharding<R>}) {
    %c = stablehlo.constant {alpa.operands = [], alpa.results = [#alpa.sharding<>], alpa.strategy = #alpa.strategy<>} dense<0xFF800000> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %c) applies stablehlo.maximum across dimensions = [1] {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<>], alpa.results = [#alpa.sharding<R>], alpa.strategy = #alpa.strategy<b=[0]>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    return {alpa.operands = [#alpa.sharding<R>], alpa.results = []} %0 : tensor<4xf32>
  }
}
