// RUN: stablehlo-alpa-opt %s --split-input-file --pass-pipeline="builtin.module(alpa-sort-in-parts{parts=2})" | FileCheck %s
// RUN: stablehlo-alpa-opt %s --split-input-file --pass-pipeline="builtin.module(alpa-sort-in-parts{parts=3})" 2>&1 | FileCheck %s --check-prefix=ODD
// RUN: stablehlo-alpa-opt %s --split-input-file --pass-pipeline="builtin.module(alpa-split-micro-batches{micro-batches=2})" | FileCheck %s --check-prefix=TIME

// Rows are sorted by the number of a group, multiplied by its matrix, and brought back: each part sorts its own, and counts its groups.

// CHECK-LABEL: func.func @groups
// CHECK-DAG: %[[KEYS:.+]] = stablehlo.reshape %arg1 : (tensor<8xi32>) -> tensor<2x4xi32>
// CHECK-DAG: %[[OWN:.+]] = stablehlo.iota dim = 1 : tensor<2x4xi32>
// CHECK: %[[SORTED:.+]]:2 = "stablehlo.sort"(%[[KEYS]], %[[OWN]]) <{dimension = 1 : i64
// CHECK: "stablehlo.gather"({{.+}}operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1]{{.+}} -> tensor<2x4x4xf32>
// CHECK: %[[SIZES:.+]] = stablehlo.reduce({{.+}}) applies stablehlo.add across dimensions = [1] : (tensor<2x4x3xi32>, tensor<i32>) -> tensor<2x3xi32>
// CHECK: "chlo.ragged_dot"(%{{.+}}, %{{.+}}, %[[SIZES]]){{.+}} : (tensor<2x4x4xf32>, tensor<3x2x4x4xf32>, tensor<2x3xi32>) -> tensor<2x4x4xf32>
// CHECK: "stablehlo.scatter"({{.+}}input_batching_dims = [0], scatter_indices_batching_dims = [0]
// CHECK: return %{{.+}} : tensor<8x4xf32>

// ODD-LABEL: func.func @groups
// ODD: "stablehlo.sort"(%arg1
// ODD-SAME: dimension = 0

// TIME-LABEL: func.func @groups
// TIME: "stablehlo.sort"
// TIME: alpa.results = [#alpa.sharding<S0R>, #alpa.sharding<S0R>]
// TIME: "chlo.ragged_dot"{{.+}}alpa.results = [#alpa.sharding<S0RR>]
func.func @groups(%x: tensor<8x4xf32>, %e: tensor<8xi32>, %w: tensor<3x4x4xf32>) -> tensor<8x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<3xi32>
  %none = stablehlo.constant dense<0> : tensor<8xi32>
  %one = stablehlo.constant dense<1> : tensor<8xi32>
  %empty = stablehlo.constant dense<0.0> : tensor<8x4xf32>
  %iota = stablehlo.iota dim = 0 : tensor<8xi32>
  %sorted:2 = "stablehlo.sort"(%e, %iota) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
    %0 = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %0 : tensor<i1>
  }) : (tensor<8xi32>, tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>)
  %raised = stablehlo.maximum %e, %none : tensor<8xi32>
  %at = stablehlo.reshape %raised : (tensor<8xi32>) -> tensor<8x1xi32>
  %sizes = "stablehlo.scatter"(%zero, %at, %one) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %0 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %0 : tensor<i32>
  }) : (tensor<3xi32>, tensor<8x1xi32>, tensor<8xi32>) -> tensor<3xi32>
  %order = stablehlo.reshape %sorted#1 : (tensor<8xi32>) -> tensor<8x1xi32>
  %rows = "stablehlo.gather"(%x, %order) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<8x1xi32>) -> tensor<8x4xf32>
  %made = "chlo.ragged_dot"(%rows, %w, %sizes) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<8x4xf32>, tensor<3x4x4xf32>, tensor<3xi32>) -> tensor<8x4xf32>
  %back = "stablehlo.scatter"(%empty, %order, %made) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<8x1xi32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %back : tensor<8x4xf32>
}

// -----

// Gradients of the matrices of all groups are sums over the parts.

// CHECK-LABEL: func.func @sums
// CHECK: %[[MADE:.+]] = "chlo.ragged_dot"{{.+}} : (tensor<2x4x4xf32>, tensor<2x4x4xf32>, tensor<2x3xi32>) -> tensor<3x2x4x4xf32>
// CHECK: stablehlo.reduce(%[[MADE]] init{{.+}}) applies stablehlo.add across dimensions = [1] : (tensor<3x2x4x4xf32>, tensor<f32>) -> tensor<3x4x4xf32>
func.func @sums(%x: tensor<8x4xf32>, %e: tensor<8xi32>, %g: tensor<8x4xf32>) -> tensor<3x4x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<3xi32>
  %none = stablehlo.constant dense<0> : tensor<8xi32>
  %one = stablehlo.constant dense<1> : tensor<8xi32>
  %iota = stablehlo.iota dim = 0 : tensor<8xi32>
  %sorted:2 = "stablehlo.sort"(%e, %iota) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
    %0 = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %0 : tensor<i1>
  }) : (tensor<8xi32>, tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>)
  %raised = stablehlo.maximum %e, %none : tensor<8xi32>
  %at = stablehlo.reshape %raised : (tensor<8xi32>) -> tensor<8x1xi32>
  %sizes = "stablehlo.scatter"(%zero, %at, %one) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %0 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %0 : tensor<i32>
  }) : (tensor<3xi32>, tensor<8x1xi32>, tensor<8xi32>) -> tensor<3xi32>
  %order = stablehlo.reshape %sorted#1 : (tensor<8xi32>) -> tensor<8x1xi32>
  %rows = "stablehlo.gather"(%x, %order) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<8x1xi32>) -> tensor<8x4xf32>
  %others = "stablehlo.gather"(%g, %order) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<8x1xi32>) -> tensor<8x4xf32>
  %made = "chlo.ragged_dot"(%rows, %others, %sizes) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [0], rhs_contracting_dimensions = [0], lhs_ragged_dimensions = [0]>}> : (tensor<8x4xf32>, tensor<8x4xf32>, tensor<3xi32>) -> tensor<3x4x4xf32>
  return %made : tensor<3x4x4xf32>
}

// -----

// What is next to a row shows the order: nothing is done.

// CHECK-LABEL: func.func @neighbours
// CHECK: "stablehlo.sort"(%arg1
// CHECK-SAME: dimension = 0
func.func @neighbours(%x: tensor<8x4xf32>, %e: tensor<8xi32>, %w: tensor<3x4x4xf32>) -> tensor<8x4xf32> {
  %zero = stablehlo.constant dense<0> : tensor<3xi32>
  %none = stablehlo.constant dense<0> : tensor<8xi32>
  %one = stablehlo.constant dense<1> : tensor<8xi32>
  %empty = stablehlo.constant dense<0.0> : tensor<8x4xf32>
  %iota = stablehlo.iota dim = 0 : tensor<8xi32>
  %sorted:2 = "stablehlo.sort"(%e, %iota) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
    %0 = stablehlo.compare LT, %a, %b, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %0 : tensor<i1>
  }) : (tensor<8xi32>, tensor<8xi32>) -> (tensor<8xi32>, tensor<8xi32>)
  %raised = stablehlo.maximum %e, %none : tensor<8xi32>
  %at = stablehlo.reshape %raised : (tensor<8xi32>) -> tensor<8x1xi32>
  %sizes = "stablehlo.scatter"(%zero, %at, %one) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %0 = stablehlo.add %a, %b : tensor<i32>
    stablehlo.return %0 : tensor<i32>
  }) : (tensor<3xi32>, tensor<8x1xi32>, tensor<8xi32>) -> tensor<3xi32>
  %order = stablehlo.reshape %sorted#1 : (tensor<8xi32>) -> tensor<8x1xi32>
  %rows = "stablehlo.gather"(%x, %order) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 4>}> : (tensor<8x4xf32>, tensor<8x1xi32>) -> tensor<8x4xf32>
  %tail = stablehlo.slice %rows [1:8, 0:4] : (tensor<8x4xf32>) -> tensor<7x4xf32>
  %first = stablehlo.slice %rows [0:1, 0:4] : (tensor<8x4xf32>) -> tensor<1x4xf32>
  %next = stablehlo.concatenate %tail, %first, dim = 0 : (tensor<7x4xf32>, tensor<1x4xf32>) -> tensor<8x4xf32>
  %made = "chlo.ragged_dot"(%next, %w, %sizes) <{ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<8x4xf32>, tensor<3x4x4xf32>, tensor<3xi32>) -> tensor<8x4xf32>
  %back = "stablehlo.scatter"(%empty, %order, %made) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<8x4xf32>, tensor<8x1xi32>, tensor<8x4xf32>) -> tensor<8x4xf32>
  return %back : tensor<8x4xf32>
}
