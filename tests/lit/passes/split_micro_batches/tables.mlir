// RUN: stablehlo-alpa-opt %s --alpa-layers-pipeline=micro-batches=4 | FileCheck %s

// A table that is looked up is kept whole, its indices are cut, although both have 8 rows.

// CHECK: func.func @main(%[[W:.+]]: tensor<4x4xf32> {alpa.input = 0 : i64}, %[[I:.+]]: tensor<2x1xi32> {alpa.batch = 1 : i64}, %[[T:.+]]: tensor<8x4xf32> {alpa.input = 2 : i64},
// CHECK: "stablehlo.gather"(%[[T]], %[[I]]){{.*}} -> tensor<2x4xf32>
func.func @main(%w: tensor<4x4xf32>, %i: tensor<8x1xi32>, %t: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %0 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<8x1xi32>) -> tensor<8x4xf32>
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}
