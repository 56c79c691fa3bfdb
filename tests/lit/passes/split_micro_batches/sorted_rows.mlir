// RUN: stablehlo-alpa-opt %s --split-input-file --pass-pipeline="builtin.module(alpa-split-micro-batches{micro-batches=2})" | FileCheck %s

// Rows are sorted by the number of a group, multiplied by its matrix, and brought back: each micro-batch sorts its own, and counts its groups.

// CHECK-LABEL: func.func @groups
// CHECK: %[[SORTED:.+]]:2 = alpa.manual(%{{.+}}) on <["time"=2]>
// CHECK: %[[OWN:.+]] = stablehlo.iota dim = 0 : tensor<4xi32>
// CHECK: "stablehlo.sort"(%{{.+}}, %[[OWN]])
// CHECK: %[[ORDER:.+]] = stablehlo.reshape %[[SORTED]]#1
// CHECK: %[[ROWS:.+]] = alpa.manual(%arg0, %[[ORDER]])
// CHECK: "stablehlo.gather"{{.+}} -> tensor<4x4xf32>
// CHECK: %[[MADE:.+]] = alpa.manual(%[[ROWS]], %arg2, %[[SORTED]]#0)
// CHECK: %[[SIZES:.+]] = stablehlo.reduce({{.+}}) applies stablehlo.add across dimensions = [0] : (tensor<4x3xi32>, tensor<i32>) -> tensor<3xi32>
// CHECK: "chlo.ragged_dot"(%{{.+}}, %{{.+}}, %[[SIZES]])
// CHECK: alpa.manual(%{{.+}}, %[[ORDER]], %[[MADE]])
// CHECK: "stablehlo.scatter"
// CHECK: alpa.accumulate
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

// Gradients of the matrices of all groups are summands.

// CHECK-LABEL: func.func @sums
// CHECK: %[[MADE:.+]] = alpa.manual(%{{.+}}) on <["time"=2]> ins {{.+}} outs {{.+}}["time"], [], [], []
// CHECK: "chlo.ragged_dot"
// CHECK: stablehlo.reshape {{.+}} -> tensor<1x3x4x4xf32>
// CHECK: stablehlo.reduce(%[[MADE]] init{{.+}}alpa.results = [#alpa.sharding<RRRP0>]
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
