// RUN: stablehlo-alpa-opt %s -alpa-print-sharding-rules -verify-diagnostics -o /dev/null

func.func @dot_general(%a: tensor<4x8x32xf32>, %b: tensor<4x32x16xf32>) -> tensor<4x8x16xf32> {
  // expected-remark @below {{#alpa.rule<([a, b, d], [a, d, c]) -> ([a, b, c]) {a=4, b=8, c=16, d=32:sum} algebraic(0) algebraic(1) flops=32768> leader}}
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x8x32xf32>, tensor<4x32x16xf32>) -> tensor<4x8x16xf32>
  return %0 : tensor<4x8x16xf32>
}

func.func @dot_general_of_two_contracted(%a: tensor<2x3x5xf32>, %b: tensor<3x2x7xf32>) -> tensor<5x7xf32> {
  // expected-remark @below {{#alpa.rule<([c, d, a], [d, c, b]) -> ([a, b]) {a=5, b=7, c=2:sum, d=3:sum} algebraic(0) algebraic(1) flops=420> leader}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [0, 1] x [1, 0] : (tensor<2x3x5xf32>, tensor<3x2x7xf32>) -> tensor<5x7xf32>
  return %0 : tensor<5x7xf32>
}

func.func @widening_is_not_linear(%a: tensor<4x8xi8>, %b: tensor<8x2xi8>) -> tensor<4x2xi32> {
  // expected-remark @below {{#alpa.rule<([a, c], [c, b]) -> ([a, b]) {a=4, b=2, c=8:sum} flops=128> leader}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x8xi8>, tensor<8x2xi8>) -> tensor<4x2xi32>
  return %0 : tensor<4x2xi32>
}

func.func @boolean_dot(%a: tensor<4x8xi1>, %b: tensor<8x2xi1>) -> tensor<4x2xi1> {
  // expected-remark @below {{#alpa.rule<([a, c], [c, b]) -> ([a, b]) {a=4, b=2, c=8:replicated} flops=128> leader}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x8xi1>, tensor<8x2xi1>) -> tensor<4x2xi1>
  return %0 : tensor<4x2xi1>
}

func.func @convolution(%x: tensor<2x9x9x4xf32>, %k: tensor<3x3x4x8xf32>) -> tensor<2x7x7x8xf32> {
  // expected-remark @below {{#alpa.rule<([a, d, e, c], [f, g, c, b]) -> ([a, h, i, b]) {a=2, b=8, c=4:sum, d=9:replicated, e=9:replicated, f=3:replicated, g=3:replicated, h=7:replicated, i=7:replicated} algebraic(0) algebraic(1) flops=56448> leader}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x9x9x4xf32>, tensor<3x3x4x8xf32>) -> tensor<2x7x7x8xf32>
  return %0 : tensor<2x7x7x8xf32>
}

func.func @feature_groups(%x: tensor<2x9x12xf32>, %k: tensor<1x3x8xf32>) -> tensor<2x9x8xf32> {
  // expected-remark @below {{#alpa.rule<([b, e, (a d)], [1, d, (a c)]) -> ([b, e, (a c)]) {a=4, b=2, c=2, d=3:sum, e=9} algebraic(0) algebraic(1) flops=864> leader}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 4 : i64} : (tensor<2x9x12xf32>, tensor<1x3x8xf32>) -> tensor<2x9x8xf32>
  return %0 : tensor<2x9x8xf32>
}

func.func @batch_groups(%x: tensor<8x9x3xf32>, %k: tensor<9x3x4xf32>) -> tensor<2x1x4xf32> {
  // expected-remark @below {{#alpa.rule<([(a b), d, c], [d, c, a]) -> ([b, 1, a]) {a=4, b=2, c=3:sum, d=9:sum} algebraic(0) algebraic(1) flops=432> leader}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 4 : i64, feature_group_count = 1 : i64} : (tensor<8x9x3xf32>, tensor<9x3x4xf32>) -> tensor<2x1x4xf32>
  return %0 : tensor<2x1x4xf32>
}

func.func @ragged_rows(%a: tensor<6x8xf32>, %b: tensor<2x8x4xf32>, %sizes: tensor<2xi32>) -> tensor<6x4xf32> {
  // expected-remark @below {{#alpa.rule<([a, c], [d, c, b], [e]) -> ([a, b]) {a=6, b=4, c=8:sum, d=2:sum, e=2:replicated} algebraic(0) algebraic(1) flops=384> leader}}
  %0 = "chlo.ragged_dot"(%a, %b, %sizes) <{precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>], ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<6x8xf32>, tensor<2x8x4xf32>, tensor<2xi32>) -> tensor<6x4xf32>
  return %0 : tensor<6x4xf32>
}

func.func @integers_multiply_modulo(%a: tensor<4x8xi8>, %b: tensor<8x2xi8>) -> tensor<4x2xi8> {
  // expected-remark @below {{#alpa.rule<([a, c], [c, b]) -> ([a, b]) {a=4, b=2, c=8:sum} linear(0) linear(1) flops=128> leader}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<4x8xi8>, tensor<8x2xi8>) -> tensor<4x2xi8>
  return %0 : tensor<4x2xi8>
}

func.func @sizes_of_groups_per_batch(%a: tensor<4x6x8xf32>, %b: tensor<2x4x8x5xf32>, %sizes: tensor<4x2xi32>) -> tensor<4x6x5xf32> {
  // expected-remark @below {{#alpa.rule<([a, b, d], [e, a, d, c], [a, f]) -> ([a, b, c]) {a=4, b=6:replicated, c=5, d=8:sum, e=2:replicated, f=2:replicated} algebraic(0) algebraic(1) flops=1920> leader}}
  %0 = "chlo.ragged_dot"(%a, %b, %sizes) <{precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>], ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [1], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [2], lhs_ragged_dimensions = [1], rhs_group_dimensions = [0]>}> : (tensor<4x6x8xf32>, tensor<2x4x8x5xf32>, tensor<4x2xi32>) -> tensor<4x6x5xf32>
  return %0 : tensor<4x6x5xf32>
}

func.func @sizes_of_groups_per_free_and_contracted(%a: tensor<4x3x6x8xf32>, %b: tensor<2x8x5xf32>, %c: tensor<3x6x5xf32>, %rows: tensor<4x3x2xi32>, %sums: tensor<3x2xi32>) -> (tensor<4x3x6x5xf32>, tensor<2x4x8x5xf32>) {
  // expected-remark @below {{#alpa.rule<([a, b, c, e], [f, e, d], [a, b, g]) -> ([a, b, c, d]) {a=4, b=3, c=6:replicated, d=5, e=8:sum, f=2:replicated, g=2:replicated} algebraic(0) algebraic(1) flops=5760> leader}}
  %0 = "chlo.ragged_dot"(%a, %b, %rows) <{precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>], ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [3], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [2], rhs_group_dimensions = [0]>}> : (tensor<4x3x6x8xf32>, tensor<2x8x5xf32>, tensor<4x3x2xi32>) -> tensor<4x3x6x5xf32>
  // expected-remark @below {{#alpa.rule<([a, d, e, b], [d, e, c], [d, f]) -> ([g, a, b, c]) {a=4, b=8, c=5, d=3:sum, e=6:replicated, f=2:replicated, g=2:replicated} algebraic(0) algebraic(1) flops=5760> leader}}
  %1 = "chlo.ragged_dot"(%a, %c, %sums) <{precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>], ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1, 2], rhs_contracting_dimensions = [0, 1], lhs_ragged_dimensions = [2]>}> : (tensor<4x3x6x8xf32>, tensor<3x6x5xf32>, tensor<3x2xi32>) -> tensor<2x4x8x5xf32>
  return %0, %1 : tensor<4x3x6x5xf32>, tensor<2x4x8x5xf32>
}
