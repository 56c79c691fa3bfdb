// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-fold-indices | FileCheck %s

// Numbers of rows, written in the order of a sort: those that are read there
// are those that were written.

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.scatter
// CHECK-NOT: stablehlo.gather
// CHECK: return %arg1
func.func @main(%keys: tensor<6xi32>, %y: tensor<6x3xf32>) -> tensor<6x3xf32> {
  %positions = stablehlo.iota dim = 0 : tensor<6xi32>
  %0:2 = "stablehlo.sort"(%keys, %positions) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>, %c: tensor<i32>, %d: tensor<i32>):
    %less = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %less : tensor<i1>
  }) : (tensor<6xi32>, tensor<6xi32>) -> (tensor<6xi32>, tensor<6xi32>)
  %1 = stablehlo.broadcast_in_dim %0#1, dims = [0] : (tensor<6xi32>) -> tensor<6x1xi32>
  %2 = stablehlo.iota dim = 0 : tensor<6x3xui32>
  %ones = stablehlo.constant dense<1> : tensor<6x3xui32>
  %zeros = stablehlo.constant dense<0> : tensor<6x3xui32>
  %3 = stablehlo.add %2, %ones : tensor<6x3xui32>
  %4 = "stablehlo.scatter"(%zeros, %1, %3) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<ui32>, %b: tensor<ui32>):
    stablehlo.return %b : tensor<ui32>
  }) : (tensor<6x3xui32>, tensor<6x1xi32>, tensor<6x3xui32>) -> tensor<6x3xui32>
  %5 = "stablehlo.gather"(%4, %1) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<6x3xui32>, tensor<6x1xi32>) -> tensor<6x3xui32>
  %6 = stablehlo.compare EQ, %3, %5 : (tensor<6x3xui32>, tensor<6x3xui32>) -> tensor<6x3xi1>
  %nothing = stablehlo.constant dense<0.0> : tensor<6x3xf32>
  %7 = stablehlo.select %6, %y, %nothing : tensor<6x3xi1>, tensor<6x3xf32>
  return %7 : tensor<6x3xf32>
}

// -----

// Of constants, each of another place.

// CHECK-LABEL: func.func @distinct
// CHECK: return %arg1
func.func @distinct(%x: tensor<6x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %places = stablehlo.constant dense<[[5], [2]]> : tensor<2x1xi32>
  %0 = "stablehlo.scatter"(%x, %places, %y) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<6x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<6x3xf32>
  %1 = "stablehlo.gather"(%0, %places) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<6x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// -----

// Two of one place, or one that is outside.

// CHECK-LABEL: func.func @equal
// CHECK: stablehlo.gather
func.func @equal(%x: tensor<6x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %places = stablehlo.constant dense<[[2], [2]]> : tensor<2x1xi32>
  %0 = "stablehlo.scatter"(%x, %places, %y) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<6x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<6x3xf32>
  %1 = "stablehlo.gather"(%0, %places) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<6x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}

// -----

// CHECK-LABEL: func.func @outside
// CHECK: stablehlo.gather
func.func @outside(%x: tensor<6x3xf32>, %y: tensor<2x3xf32>) -> tensor<2x3xf32> {
  %places = stablehlo.constant dense<[[2], [6]]> : tensor<2x1xi32>
  %0 = "stablehlo.scatter"(%x, %places, %y) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %b : tensor<f32>
  }) : (tensor<6x3xf32>, tensor<2x1xi32>, tensor<2x3xf32>) -> tensor<6x3xf32>
  %1 = "stablehlo.gather"(%0, %places) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 3>}> : (tensor<6x3xf32>, tensor<2x1xi32>) -> tensor<2x3xf32>
  return %1 : tensor<2x3xf32>
}
