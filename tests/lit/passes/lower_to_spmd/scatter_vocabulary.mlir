// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// The gradient of a table split over the vocabulary: updates of other devices' rows go to a spare
// row behind the block, which is cut off again.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<4x4xf32>, %[[ARG1:[a-z0-9]+]]: tensor<6x1xi32>, %[[ARG2:[a-z0-9]+]]: tensor<6x4xf32>) -> tensor<4x4xf32>
// CHECK: [[CST:%[a-z0-9_]+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK: [[C:%[a-z0-9_]+]] = stablehlo.constant dense<0> : tensor<6x1xi32>
// CHECK: [[C_0:%[a-z0-9_]+]] = stablehlo.constant dense<4> : tensor<6x1xi32>
// CHECK: [[C_1:%[a-z0-9_]+]] = stablehlo.constant dense<4> : tensor<ui32>
// CHECK: [[C_2:%[a-z0-9_]+]] = stablehlo.constant dense<2> : tensor<ui32>
// CHECK: [[V0:%[a-z0-9_]+]] = stablehlo.partition_id : tensor<ui32>
// CHECK: [[V1:%[a-z0-9_]+]] = stablehlo.remainder [[V0]], [[C_2]] : tensor<ui32>
// CHECK: [[V2:%[a-z0-9_]+]] = stablehlo.multiply [[V1]], [[C_1]] : tensor<ui32>
// CHECK: [[V3:%[a-z0-9_]+]] = stablehlo.convert [[V2]] : (tensor<ui32>) -> tensor<i32>
// CHECK: [[V4:%[a-z0-9_]+]] = stablehlo.broadcast_in_dim [[V3]], dims = [] : (tensor<i32>) -> tensor<6x1xi32>
// CHECK: [[V5:%[a-z0-9_]+]] = stablehlo.subtract %[[ARG1]], [[V4]] : tensor<6x1xi32>
// CHECK: [[V6:%[a-z0-9_]+]] = stablehlo.compare GE, [[V5]], [[C]], SIGNED : (tensor<6x1xi32>, tensor<6x1xi32>) -> tensor<6x1xi1>
// CHECK: [[V7:%[a-z0-9_]+]] = stablehlo.compare LT, [[V5]], [[C_0]], SIGNED : (tensor<6x1xi32>, tensor<6x1xi32>) -> tensor<6x1xi1>
// CHECK: [[V8:%[a-z0-9_]+]] = stablehlo.and [[V6]], [[V7]] : tensor<6x1xi1>
// CHECK: [[V9:%[a-z0-9_]+]] = stablehlo.select [[V8]], [[V5]], [[C_0]] : tensor<6x1xi1>, tensor<6x1xi32>
// CHECK: [[V10:%[a-z0-9_]+]] = stablehlo.pad %[[ARG0]], [[CST]], low = [0, 0], high = [1, 0], interior = [0, 0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<5x4xf32>
// CHECK: [[V11:%[a-z0-9_]+]] = "stablehlo.scatter"([[V10]], [[V9]], %[[ARG2]]) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> (
// CHECK: {{\^bb[0-9]+}}({{%[a-z0-9]+}}: tensor<f32>, {{%[a-z0-9]+}}: tensor<f32>):
// CHECK: [[V13:%[a-z0-9_]+]] = stablehlo.add {{%[a-z0-9]+}}, {{%[a-z0-9]+}} : tensor<f32>
// CHECK: stablehlo.return [[V13]] : tensor<f32>
// CHECK: }) : (tensor<5x4xf32>, tensor<6x1xi32>, tensor<6x4xf32>) -> tensor<5x4xf32>
// CHECK: [[V12:%[a-z0-9_]+]] = stablehlo.slice [[V11]] [0:4, 0:4] : (tensor<5x4xf32>) -> tensor<4x4xf32>
// CHECK: return [[V12]] : tensor<4x4xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%table: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}, %i: tensor<6x1xi32> {alpa.sharding = #alpa.sharding<RR>}, %u: tensor<6x4xf32> {alpa.sharding = #alpa.sharding<RR>}) -> (tensor<8x4xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = "stablehlo.scatter"(%table, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
    ^bb0(%a: tensor<f32>, %b: tensor<f32>):
      %1 = stablehlo.add %a, %b : tensor<f32>
      stablehlo.return %1 : tensor<f32>
    }) {alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<S0R>], alpa.strategy = #alpa.strategy<b=[0]>} : (tensor<8x4xf32>, tensor<6x1xi32>, tensor<6x4xf32>) -> tensor<8x4xf32>
    return {alpa.operands = [#alpa.sharding<S0R>], alpa.results = []} %0 : tensor<8x4xf32>
  }
}
