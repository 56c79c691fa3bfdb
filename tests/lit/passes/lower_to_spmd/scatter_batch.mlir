// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// Updates split over the indices: each device adds its own, and the sum is partial. Only one device
// starts from the table, the others from zeros.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<8x4xf32>, %[[ARG1:[a-z0-9]+]]: tensor<3x1xi32>, %[[ARG2:[a-z0-9]+]]: tensor<3x4xf32>) -> tensor<8x4xf32>
// CHECK: [[CST:%[a-z0-9_]+]] = stablehlo.constant dense<-0.000000e+00> : tensor<f32>
// CHECK: [[C:%[a-z0-9_]+]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK: [[C_0:%[a-z0-9_]+]] = stablehlo.constant dense<1> : tensor<ui32>
// CHECK: [[C_1:%[a-z0-9_]+]] = stablehlo.constant dense<2> : tensor<ui32>
// CHECK: [[V0:%[a-z0-9_]+]] = stablehlo.partition_id : tensor<ui32>
// CHECK: [[V1:%[a-z0-9_]+]] = stablehlo.remainder [[V0]], [[C_1]] : tensor<ui32>
// CHECK: [[V2:%[a-z0-9_]+]] = stablehlo.multiply [[V1]], [[C_0]] : tensor<ui32>
// CHECK: [[V3:%[a-z0-9_]+]] = stablehlo.convert [[V2]] : (tensor<ui32>) -> tensor<i32>
// CHECK: [[V4:%[a-z0-9_]+]] = stablehlo.compare EQ, [[V3]], [[C]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK: [[V5:%[a-z0-9_]+]] = stablehlo.broadcast_in_dim [[CST]], dims = [] : (tensor<f32>) -> tensor<8x4xf32>
// CHECK: [[V6:%[a-z0-9_]+]] = stablehlo.select [[V4]], %[[ARG0]], [[V5]] : tensor<i1>, tensor<8x4xf32>
// CHECK: [[V7:%[a-z0-9_]+]] = "stablehlo.scatter"([[V6]], %[[ARG1]], %[[ARG2]]) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> (
// CHECK: {{\^bb[0-9]+}}({{%[a-z0-9]+}}: tensor<f32>, {{%[a-z0-9]+}}: tensor<f32>):
// CHECK: [[V9:%[a-z0-9_]+]] = stablehlo.add {{%[a-z0-9]+}}, {{%[a-z0-9]+}} : tensor<f32>
// CHECK: stablehlo.return [[V9]] : tensor<f32>
// CHECK: }) : (tensor<8x4xf32>, tensor<3x1xi32>, tensor<3x4xf32>) -> tensor<8x4xf32>
// CHECK: [[V8:%[a-z0-9_]+]] = "stablehlo.all_reduce"([[V7]]) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> (
// CHECK: {{\^bb[0-9]+}}({{%[a-z0-9]+}}: tensor<f32>, {{%[a-z0-9]+}}: tensor<f32>):
// CHECK: [[V9_2:%[a-z0-9_]+]] = stablehlo.add {{%[a-z0-9]+}}, {{%[a-z0-9]+}} : tensor<f32>
// CHECK: stablehlo.return [[V9_2]] : tensor<f32>
// CHECK: }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
// CHECK: return [[V8]] : tensor<8x4xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%table: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<RR>}, %i: tensor<6x1xi32> {alpa.sharding = #alpa.sharding<S0R>}, %u: tensor<6x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %t = alpa.reshard %table from <RR> to <RRP0> : tensor<8x4xf32>
    %0 = "stablehlo.scatter"(%t, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) {alpa.operands = [#alpa.sharding<RRP0>, #alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<a=[0]>} : (tensor<8x4xf32>, tensor<6x1xi32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    %2 = alpa.reshard %0 from <RRP0> to <RR> : tensor<8x4xf32>
    return {alpa.operands = [#alpa.sharding<RR>], alpa.results = []} %2 : tensor<8x4xf32>
  }
}
