// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-batch-lookups | FileCheck %s

// The logit of each label, as JAX writes it.

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.+]]: tensor<8x4xf32>, %[[LABELS:.+]]: tensor<8x1xi32>)
// CHECK-NEXT: %[[FOUND:.+]] = "stablehlo.gather"(%[[X]], %[[LABELS]]) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>
// CHECK-NEXT: return %[[FOUND]]
func.func @main(%x: tensor<8x4xf32>, %labels: tensor<8x1xi32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<8xi32>
  %eight = stablehlo.constant dense<8> : tensor<8xi32>
  %0 = stablehlo.iota dim = 0 : tensor<8xi32>
  %1 = stablehlo.compare LT, %0, %zero, SIGNED : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
  %2 = stablehlo.add %0, %eight : tensor<8xi32>
  %3 = stablehlo.select %1, %2, %0 : tensor<8xi1>, tensor<8xi32>
  %4 = stablehlo.broadcast_in_dim %3, dims = [0] : (tensor<8xi32>) -> tensor<8x1xi32>
  %5 = stablehlo.concatenate %4, %labels, dim = 1 : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x2xi32>
  %6 = "stablehlo.gather"(%x, %5) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8xf32>
  return %6 : tensor<8xf32>
}

// -----

// Positions that are written out, of the second dimension, and an order of the
// indices that is by them.

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.+]]: tensor<5x3x4xf32>, %[[STEP:.+]]: tensor<3x1xi16>
// CHECK-NEXT: "stablehlo.gather"(%[[X]], %[[STEP]]) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], operand_batching_dims = [1], start_indices_batching_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1, 4>}>
func.func @main(%x: tensor<5x3x4xf32>, %step: tensor<3x1xi16>) -> tensor<3x4xf32> {
  %0 = stablehlo.constant dense<[[0], [1], [2]]> : tensor<3x1xi16>
  %1 = stablehlo.concatenate %step, %0, dim = 1 : (tensor<3x1xi16>, tensor<3x1xi16>) -> tensor<3x2xi16>
  %2 = "stablehlo.gather"(%x, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, indices_are_sorted = true, slice_sizes = array<i64: 1, 1, 4>}> : (tensor<5x3x4xf32>, tensor<3x2xi16>) -> tensor<3x4xf32>
  return %2 : tensor<3x4xf32>
}

// -----

// Positions that a loop hands on; the diagonal keeps one of its two indices.

// CHECK-LABEL: func.func @main
// CHECK: "stablehlo.gather"(%{{.+}}, %{{.+}}) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>
func.func @main(%x: tensor<8x8xf32>, %more: tensor<i1>) -> tensor<8xf32> {
  %rows = stablehlo.iota dim = 0 : tensor<8xi32>
  %zero = stablehlo.constant dense<0.0> : tensor<8xf32>
  %0:4 = stablehlo.while(%a = %x, %i = %rows, %b = %more, %c = %zero) : tensor<8x8xf32>, tensor<8xi32>, tensor<i1>, tensor<8xf32>
  cond {
    stablehlo.return %b : tensor<i1>
  } do {
    %1 = stablehlo.reshape %i : (tensor<8xi32>) -> tensor<8x1xi32>
    %2 = stablehlo.concatenate %1, %1, dim = 1 : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x2xi32>
    %3 = "stablehlo.gather"(%a, %2) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<8x8xf32>, tensor<8x2xi32>) -> tensor<8xf32>
    stablehlo.return %a, %i, %b, %3 : tensor<8x8xf32>, tensor<8xi32>, tensor<i1>, tensor<8xf32>
  }
  return %0#3 : tensor<8xf32>
}

// -----

// Not own positions: rows of the first half, positions along the other
// dimension of the indices, positions that a type of eight bits cannot count,
// and a loop that counts on.

// CHECK-LABEL: func.func @main
// CHECK-COUNT-4: collapsed_slice_dims = [0, 1], start_index_map = [0, 1]
func.func @main(%x: tensor<8x4xf32>, %half: tensor<4x1xi32>, %square: tensor<8x8x1xi32>, %y: tensor<300x4xf32>, %some: tensor<300x1xi8>, %more: tensor<i1>, %column: tensor<8x1xi32>) -> (tensor<4xf32>, tensor<8x8xf32>, tensor<300xf32>, tensor<8xf32>) {
  %0 = stablehlo.iota dim = 0 : tensor<4x1xi32>
  %1 = stablehlo.concatenate %0, %half, dim = 1 : (tensor<4x1xi32>, tensor<4x1xi32>) -> tensor<4x2xi32>
  %2 = "stablehlo.gather"(%x, %1) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<8x4xf32>, tensor<4x2xi32>) -> tensor<4xf32>
  %3 = stablehlo.iota dim = 2 : tensor<8x8x1xi32>
  %4 = stablehlo.concatenate %3, %square, dim = 2 : (tensor<8x8x1xi32>, tensor<8x8x1xi32>) -> tensor<8x8x2xi32>
  %5 = "stablehlo.gather"(%x, %4) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 2>, slice_sizes = array<i64: 1, 1>}> : (tensor<8x4xf32>, tensor<8x8x2xi32>) -> tensor<8x8xf32>
  %6 = stablehlo.iota dim = 0 : tensor<300x1xi8>
  %7 = stablehlo.concatenate %6, %some, dim = 1 : (tensor<300x1xi8>, tensor<300x1xi8>) -> tensor<300x2xi8>
  %8 = "stablehlo.gather"(%y, %7) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<300x4xf32>, tensor<300x2xi8>) -> tensor<300xf32>
  %rows = stablehlo.iota dim = 0 : tensor<8x1xi32>
  %zero = stablehlo.constant dense<0.0> : tensor<8xf32>
  %9:3 = stablehlo.while(%i = %rows, %b = %more, %c = %zero) : tensor<8x1xi32>, tensor<i1>, tensor<8xf32>
  cond {
    stablehlo.return %b : tensor<i1>
  } do {
    %10 = stablehlo.concatenate %i, %column, dim = 1 : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x2xi32>
    %11 = "stablehlo.gather"(%x, %10) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8xf32>
    %12 = stablehlo.add %i, %i : tensor<8x1xi32>
    stablehlo.return %12, %b, %11 : tensor<8x1xi32>, tensor<i1>, tensor<8xf32>
  }
  return %2, %5, %8, %9#2 : tensor<4xf32>, tensor<8x8xf32>, tensor<300xf32>, tensor<8xf32>
}

// -----

// Rows that are looked up by nothing else: zero, of a dimension of size one.

// CHECK-LABEL: func.func @main
// CHECK-SAME: (%[[X:.+]]: tensor<8x4xf32>)
// CHECK-NEXT: %[[ZERO:.+]] = stablehlo.constant dense<0> : tensor<8x2x1xi32>
// CHECK-NEXT: %[[WIDE:.+]] = stablehlo.reshape %[[X]] : (tensor<8x4xf32>) -> tensor<8x4x1xf32>
// CHECK-NEXT: "stablehlo.gather"(%[[WIDE]], %[[ZERO]]) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [2], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [2], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 4, 1>}>
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x2x4xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<8x2x1xi32>
  %1 = "stablehlo.gather"(%x, %0) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = true, slice_sizes = array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<8x2x1xi32>) -> tensor<8x2x4xf32>
  return %1 : tensor<8x2x4xf32>
}

// -----

// Indices that are the vectors of their one component.

// CHECK-LABEL: func.func @main
// CHECK: "stablehlo.gather"(%{{.+}}, %{{.+}}) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<8x1xf32>, tensor<8xi32>) -> tensor<8xf32>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = stablehlo.iota dim = 0 : tensor<8xi32>
  %1 = "stablehlo.gather"(%x, %0) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1>}> : (tensor<8xf32>, tensor<8xi32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// Limits that no position exceeds; those of the second gather cut positions.

// CHECK-LABEL: func.func @main
// CHECK: %[[CUT:.+]] = stablehlo.clamp
// CHECK: %[[LABELS:.+]] = stablehlo.slice %[[CUT]] [0:8, 1:2]
// CHECK: "stablehlo.gather"(%{{.+}}, %[[LABELS]]) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0]
// CHECK: collapsed_slice_dims = [0, 1], start_index_map = [0, 1]
func.func @main(%x: tensor<8x4xf32>, %labels: tensor<8x1xi32>) -> (tensor<8xf32>, tensor<8xf32>) {
  %0 = stablehlo.iota dim = 0 : tensor<8x1xi32>
  %1 = stablehlo.concatenate %0, %labels, dim = 1 : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x2xi32>
  %least = stablehlo.constant dense<0> : tensor<8x2xi32>
  %sizes = stablehlo.constant dense<[7, 3]> : tensor<2xi32>
  %large = stablehlo.constant dense<2147483647> : tensor<2xi32>
  %limits = stablehlo.minimum %sizes, %large : tensor<2xi32>
  %most = stablehlo.broadcast_in_dim %limits, dims = [1] : (tensor<2xi32>) -> tensor<8x2xi32>
  %2 = stablehlo.clamp %least, %1, %most : tensor<8x2xi32>
  %3 = "stablehlo.gather"(%x, %2) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8xf32>
  %six = stablehlo.constant dense<[6, 3]> : tensor<2xi32>
  %fewer = stablehlo.broadcast_in_dim %six, dims = [1] : (tensor<2xi32>) -> tensor<8x2xi32>
  %4 = stablehlo.clamp %least, %1, %fewer : tensor<8x2xi32>
  %5 = "stablehlo.gather"(%x, %4) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8xf32>
  return %3, %5 : tensor<8xf32>, tensor<8xf32>
}
