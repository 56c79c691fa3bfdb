// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// An embedding table split over the features: only the slice sizes change.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<8x2xf32>, %[[ARG1:[a-z0-9]+]]: tensor<6x1xi32>) -> tensor<6x2xf32>
// CHECK: [[V0:%[a-z0-9_]+]] = "stablehlo.gather"(%[[ARG0]], %[[ARG1]]) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 2>}> : (tensor<8x2xf32>, tensor<6x1xi32>) -> tensor<6x2xf32>
// CHECK: return [[V0]] : tensor<6x2xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%table: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<RS0>}, %i: tensor<6x1xi32> {alpa.sharding = #alpa.sharding<RR>}) -> (tensor<6x4xf32> {alpa.sharding = #alpa.sharding<RS0>}) {
    %0 = "stablehlo.gather"(%table, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<RR>], alpa.results = [#alpa.sharding<RS0>], alpa.strategy = #alpa.strategy<c=[0]>} : (tensor<8x4xf32>, tensor<6x1xi32>) -> tensor<6x4xf32>
    return {alpa.operands = [#alpa.sharding<RS0>], alpa.results = []} %0 : tensor<6x4xf32>
  }
}
