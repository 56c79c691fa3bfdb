// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// An embedding table split over the vocabulary: every device reads the rows that it has, the others
// are zeros of a partial sum.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<4x4xf32>, %[[ARG1:[a-z0-9]+]]: tensor<6x1xi32>) -> tensor<6x4xf32>
// CHECK: [[CST:%[a-z0-9_]+]] = stablehlo.constant dense<-0.000000e+00> : tensor<6x4xf32>
// CHECK: [[C:%[a-z0-9_]+]] = stablehlo.constant dense<4> : tensor<6xi32>
// CHECK: [[C_0:%[a-z0-9_]+]] = stablehlo.constant dense<0> : tensor<6xi32>
// CHECK: [[C_1:%[a-z0-9_]+]] = stablehlo.constant dense<4> : tensor<ui32>
// CHECK: [[C_2:%[a-z0-9_]+]] = stablehlo.constant dense<2> : tensor<ui32>
// CHECK: [[C_3:%[a-z0-9_]+]] = stablehlo.constant dense<7> : tensor<6x1xi32>
// CHECK: [[C_4:%[a-z0-9_]+]] = stablehlo.constant dense<0> : tensor<6x1xi32>
// CHECK: [[V0:%[a-z0-9_]+]] = stablehlo.maximum %[[ARG1]], [[C_4]] : tensor<6x1xi32>
// CHECK: [[V1:%[a-z0-9_]+]] = stablehlo.minimum [[V0]], [[C_3]] : tensor<6x1xi32>
// CHECK: [[V2:%[a-z0-9_]+]] = stablehlo.partition_id : tensor<ui32>
// CHECK: [[V3:%[a-z0-9_]+]] = stablehlo.remainder [[V2]], [[C_2]] : tensor<ui32>
// CHECK: [[V4:%[a-z0-9_]+]] = stablehlo.multiply [[V3]], [[C_1]] : tensor<ui32>
// CHECK: [[V5:%[a-z0-9_]+]] = stablehlo.convert [[V4]] : (tensor<ui32>) -> tensor<i32>
// CHECK: [[V6:%[a-z0-9_]+]] = stablehlo.broadcast_in_dim [[V5]], dims = [] : (tensor<i32>) -> tensor<6x1xi32>
// CHECK: [[V7:%[a-z0-9_]+]] = stablehlo.subtract [[V1]], [[V6]] : tensor<6x1xi32>
// CHECK: [[V8:%[a-z0-9_]+]] = stablehlo.reshape [[V7]] : (tensor<6x1xi32>) -> tensor<6xi32>
// CHECK: [[V9:%[a-z0-9_]+]] = stablehlo.compare GE, [[V8]], [[C_0]], SIGNED : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
// CHECK: [[V10:%[a-z0-9_]+]] = stablehlo.compare LT, [[V8]], [[C]], SIGNED : (tensor<6xi32>, tensor<6xi32>) -> tensor<6xi1>
// CHECK: [[V11:%[a-z0-9_]+]] = stablehlo.and [[V9]], [[V10]] : tensor<6xi1>
// CHECK: [[V12:%[a-z0-9_]+]] = "stablehlo.gather"(%[[ARG0]], [[V7]]) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<4x4xf32>, tensor<6x1xi32>) -> tensor<6x4xf32>
// CHECK: [[V13:%[a-z0-9_]+]] = stablehlo.broadcast_in_dim [[V11]], dims = [0] : (tensor<6xi1>) -> tensor<6x4xi1>
// CHECK: [[V14:%[a-z0-9_]+]] = stablehlo.select [[V13]], [[V12]], [[CST]] : tensor<6x4xi1>, tensor<6x4xf32>
// CHECK: [[V15:%[a-z0-9_]+]] = "stablehlo.all_reduce"([[V14]]) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<{{\[\[}}0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> (
// CHECK: {{\^bb[0-9]+}}({{%[a-z0-9]+}}: tensor<f32>, {{%[a-z0-9]+}}: tensor<f32>):
// CHECK: [[V16:%[a-z0-9_]+]] = stablehlo.add {{%[a-z0-9]+}}, {{%[a-z0-9]+}} : tensor<f32>
// CHECK: stablehlo.return [[V16]] : tensor<f32>
// CHECK: }) : (tensor<6x4xf32>) -> tensor<6x4xf32>
// CHECK: return [[V15]] : tensor<6x4xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%table: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %i: tensor<6x1xi32> {alpa.sharding = #alpa.sharding<RR>}) -> (tensor<6x4xf32> {alpa.sharding = #alpa.sharding<RR>}) {
    %0 = "stablehlo.gather"(%table, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<RRP0>], alpa.strategy = #alpa.strategy<b=[0]>} : (tensor<8x4xf32>, tensor<6x1xi32>) -> tensor<6x4xf32>
    %1 = alpa.reshard %0 from <RRP0> to <RR> : tensor<6x4xf32>
    return {alpa.operands = [#alpa.sharding<RR>], alpa.results = []} %1 : tensor<6x4xf32>
  }
}
