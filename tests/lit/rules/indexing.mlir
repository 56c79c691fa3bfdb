// RUN: stablehlo-alpa-opt %s -alpa-print-sharding-rules -verify-diagnostics -o /dev/null

func.func @embedding(%table: tensor<64x16xf32>, %i: tensor<2x4x1xi32>) -> tensor<2x4x16xf32> {
  // expected-remark @below {{#alpa.rule<([c, d], [a, b, 1]) -> ([a, b, d]) {a=2, b=4, c=64:sum, d=16} linear(0) untouched_operands(0)> leader}}
  %0 = "stablehlo.gather"(%table, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [2], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 2>, indices_are_sorted = false, slice_sizes = array<i64: 1, 16>}> : (tensor<64x16xf32>, tensor<2x4x1xi32>) -> tensor<2x4x16xf32>
  return %0 : tensor<2x4x16xf32>
}

func.func @take_along_axis(%a: tensor<4x8xf32>, %i: tensor<4x1xi32>) -> tensor<4xf32> {
  // expected-remark @below {{#alpa.rule<([a, b], [a, 1]) -> ([a]) {a=4, b=8:sum} linear(0) untouched_operands(0)> leader}}
  %0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<4x8xf32>, tensor<4x1xi32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @window(%a: tensor<4x8xf32>, %i: tensor<5x2xi32>) -> tensor<5x4x2xf32> {
  // expected-remark @below {{#alpa.rule<([b, c], [a, d]) -> ([a, b, e]) {a=5, b=4, c=8:replicated, d=2:replicated, e=2:replicated} linear(0) untouched_operands(0)> leader}}
  %0 = "stablehlo.gather"(%a, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1, 2], start_index_map = [0, 1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 4, 2>}> : (tensor<4x8xf32>, tensor<5x2xi32>) -> tensor<5x4x2xf32>
  return %0 : tensor<5x4x2xf32>
}

func.func @boolean_table(%table: tensor<64xi1>, %i: tensor<4x1xi32>) -> tensor<4xi1> {
  // expected-remark @below {{#alpa.rule<([b], [a, 1]) -> ([a]) {a=4, b=64:replicated} untouched_operands(0)> leader}}
  %0 = "stablehlo.gather"(%table, %i) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1>}> : (tensor<64xi1>, tensor<4x1xi32>) -> tensor<4xi1>
  return %0 : tensor<4xi1>
}

func.func @gradient_of_embedding(%table: tensor<64x16xf32>, %i: tensor<2x4x1xi32>, %u: tensor<2x4x16xf32>) -> tensor<64x16xf32> {
  // expected-remark @below {{#alpa.rule<([c, d], [a, b, 1], [a, b, d]) -> ([c, d]) {a=2:sum, b=4:sum, c=64, d=16} linear(0, 2) accumulators(0) untouched_operands(0) untouched_results(0) flops=128> leader}}
  %0 = "stablehlo.scatter"(%table, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [2], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 2>, unique_indices = false}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    // expected-remark @below {{follower}}
    %1 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<64x16xf32>, tensor<2x4x1xi32>, tensor<2x4x16xf32>) -> tensor<64x16xf32>
  return %0 : tensor<64x16xf32>
}

func.func @replacement(%a: tensor<64x16xf32>, %i: tensor<4x1xi32>, %u: tensor<4x16xf32>) -> tensor<64x16xf32> {
  // expected-remark @below {{#alpa.rule<([b, c], [a, 1], [a, c]) -> ([b, c]) {a=4:replicated, b=64, c=16} untouched_operands(0) untouched_results(0)> leader}}
  %0 = "stablehlo.scatter"(%a, %i, %u) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>, unique_indices = false}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    stablehlo.return %y : tensor<f32>
  }) : (tensor<64x16xf32>, tensor<4x1xi32>, tensor<4x16xf32>) -> tensor<64x16xf32>
  return %0 : tensor<64x16xf32>
}
