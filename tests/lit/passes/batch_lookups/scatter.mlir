// RUN: stablehlo-alpa-opt %s -alpa-batch-lookups | FileCheck %s

// The gradient of what `x[i, j, k]` picks for positions i and k: two of three
// components go, and what is left of the indices is joined anew.

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.+]]: tensor<8x4x2x5xf32>, %[[J:.+]]: tensor<8x2x1xi32>, %[[L:.+]]: tensor<8x2x1xi32>, %[[U:.+]]: tensor<8x2xf32>)
// CHECK-NEXT: %[[INDICES:.+]] = stablehlo.concatenate %[[J]], %[[L]], dim = 2
// CHECK-NEXT: "stablehlo.scatter"(%[[X]], %[[INDICES]], %[[U]]) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1, 3], input_batching_dims = [0, 2], scatter_indices_batching_dims = [0, 1], scatter_dims_to_operand_dims = [1, 3], index_vector_dim = 2>, unique_indices = true}>
func.func @main(%x: tensor<8x4x2x5xf32>, %j: tensor<8x2x1xi32>, %l: tensor<8x2x1xi32>, %u: tensor<8x2xf32>) -> tensor<8x4x2x5xf32> {
  %i = stablehlo.iota dim = 0 : tensor<8x2x1xi32>
  %0 = stablehlo.iota dim = 0 : tensor<2xi8>
  %1 = stablehlo.convert %0 : (tensor<2xi8>) -> tensor<2xi32>
  %k = stablehlo.broadcast_in_dim %1, dims = [1] : (tensor<2xi32>) -> tensor<8x2x1xi32>
  %indices = stablehlo.concatenate %i, %j, %k, %l, dim = 2 : (tensor<8x2x1xi32>, tensor<8x2x1xi32>, tensor<8x2x1xi32>, tensor<8x2x1xi32>) -> tensor<8x2x4xi32>
  %2 = "stablehlo.scatter"(%x, %indices, %u) <{indices_are_sorted = true, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0, 1, 2, 3], scatter_dims_to_operand_dims = [0, 1, 2, 3], index_vector_dim = 2>, unique_indices = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<8x4x2x5xf32>, tensor<8x2x4xi32>, tensor<8x2xf32>) -> tensor<8x4x2x5xf32>
  return %2 : tensor<8x4x2x5xf32>
}
