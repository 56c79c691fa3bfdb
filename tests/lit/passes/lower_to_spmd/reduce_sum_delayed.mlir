// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// A sum over a split dimension stays partial through an addition and is resolved once.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<4x4xf32>, %[[ARG1:[a-z0-9]+]]: tensor<4x4xf32>) -> tensor<2xf32>
// CHECK: [[CST:%[a-z0-9_]+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK: [[V0:%[a-z0-9_]+]] = stablehlo.reduce(%[[ARG0]] init: [[CST]]) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: [[V1:%[a-z0-9_]+]] = stablehlo.reduce(%[[ARG1]] init: [[CST]]) applies stablehlo.add across dimensions = [1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
// CHECK: [[V2:%[a-z0-9_]+]] = stablehlo.add [[V0]], [[V1]] : tensor<4xf32>
// CHECK: [[V3:%[a-z0-9_]+]] = "stablehlo.reduce_scatter"([[V2]]) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64, use_global_device_ids}> (
// CHECK: {{\^bb[0-9]+}}({{%[a-z0-9]+}}: tensor<f32>, {{%[a-z0-9]+}}: tensor<f32>):
// CHECK: [[V4:%[a-z0-9_]+]] = stablehlo.add {{%[a-z0-9]+}}, {{%[a-z0-9]+}} : tensor<f32>
// CHECK: stablehlo.return [[V4]] : tensor<f32>
// CHECK: }) : (tensor<4xf32>) -> tensor<2xf32>
// CHECK: return [[V3]] : tensor<2xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RS0>}, %y: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RS0>}) -> (tensor<4xf32> {alpa.sharding = #alpa.sharding<S0>}) {
    %c = stablehlo.constant {alpa.operands = [], alpa.results = [#alpa.sharding<>], alpa.strategy = #alpa.strategy<>} dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<>], alpa.results = [#alpa.sharding<RP0>], alpa.strategy = #alpa.strategy<b=[0]>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %1 = stablehlo.reduce(%y init: %c) applies stablehlo.add across dimensions = [1] {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<>], alpa.results = [#alpa.sharding<RP0>], alpa.strategy = #alpa.strategy<b=[0]>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %2 = stablehlo.add %0, %1 {alpa.operands = [#alpa.sharding<RP0>, #alpa.sharding<RP0>], alpa.results = [#alpa.sharding<RP0>], alpa.strategy = #alpa.strategy<linear(0)=[0]>} : tensor<4xf32>
    %3 = alpa.reshard %2 from <RP0> to <S0> : tensor<4xf32>
    return {alpa.operands = [#alpa.sharding<S0>], alpa.results = []} %3 : tensor<4xf32>
  }
}
