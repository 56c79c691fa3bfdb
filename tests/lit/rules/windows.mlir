// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-print-sharding-rules -verify-diagnostics

// Blocks of the input lie under blocks of the result: rows of neighbours are missing.

func.func @same(%x: tensor<1x16x3xf32>, %k: tensor<3x3x5xf32>) -> tensor<1x16x5xf32> {
  // expected-remark @below {{#alpa.rule<([1, c, b], [d, b, a]) -> ([1, c, a]) {a=5, b=3:sum, c=16:windowed, d=3:replicated} algebraic(0) algebraic(1) flops=1440> leader}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x16x3xf32>, tensor<3x3x5xf32>) -> tensor<1x16x5xf32>
  return %0 : tensor<1x16x5xf32>
}

func.func @strided(%x: tensor<1x16x3xf32>, %k: tensor<3x3x5xf32>) -> tensor<1x8x5xf32> {
  // expected-remark @below {{#alpa.rule<([1, (c d), b], [e, b, a]) -> ([1, c, a]) {a=5, b=3:sum, c=8:windowed, d=2:replicated, e=3:replicated} algebraic(0) algebraic(1) flops=720> leader}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [2], pad = [[0, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x16x3xf32>, tensor<3x3x5xf32>) -> tensor<1x8x5xf32>
  return %0 : tensor<1x8x5xf32>
}

func.func @transposed(%x: tensor<1x8x3xf32>, %k: tensor<3x3x5xf32>) -> tensor<1x16x5xf32> {
  // expected-remark @below {{#alpa.rule<([1, c, b], [e, b, a]) -> ([1, (c d), a]) {a=5, b=3:sum, c=8:windowed, d=2:replicated, e=3:replicated} algebraic(0) algebraic(1) flops=1440> leader}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[2, 1]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x3xf32>, tensor<3x3x5xf32>) -> tensor<1x16x5xf32>
  return %0 : tensor<1x16x5xf32>
}

// The gradient of a kernel: the taps are split with the input.

func.func @gradient_of_kernel(%x: tensor<3x16x1xf32>, %g: tensor<16x1x5xf32>) -> tensor<3x3x5xf32> {
  // expected-remark @below {{#alpa.rule<([a, c, 1], [c, 1, b]) -> ([a, d, b]) {a=3, b=5, c=16:windowed_sum, d=3:replicated} algebraic(0) algebraic(1) flops=1440> leader}}
  %0 = stablehlo.convolution(%x, %g) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<3x16x1xf32>, tensor<16x1x5xf32>) -> tensor<3x3x5xf32>
  return %0 : tensor<3x3x5xf32>
}

// XLA ends the process at blocks of one row under as many taps as the base dilation: blocks have two.

func.func @gradient_of_transposed_kernel(%x: tensor<3x8x1xf32>, %g: tensor<16x1x5xf32>) -> tensor<3x4x5xf32> {
  // expected-remark @below {{#alpa.rule<([a, (c d), 1], [(c e), 1, b]) -> ([a, f, b]) {a=3, b=5, c=4:windowed_sum, d=2:replicated, e=4:replicated, f=4:replicated} algebraic(0) algebraic(1) flops=1920> leader}}
  %0 = stablehlo.convolution(%x, %g) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[2, 2]], lhs_dilate = [2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<3x8x1xf32>, tensor<16x1x5xf32>) -> tensor<3x4x5xf32>
  return %0 : tensor<3x4x5xf32>
}

// Taps that run backwards do not lie over the rows that they take.

func.func @reversed(%x: tensor<3x16x1xf32>, %g: tensor<16x1x5xf32>) -> tensor<3x3x5xf32> {
  // expected-remark @below {{#alpa.rule<([a, c, 1], [d, 1, b]) -> ([a, e, b]) {a=3, b=5, c=16:replicated, d=16:replicated, e=3:replicated} algebraic(0) algebraic(1) flops=1440> leader}}
  %0 = stablehlo.convolution(%x, %g) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {pad = [[1, 1]], reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<3x16x1xf32>, tensor<16x1x5xf32>) -> tensor<3x3x5xf32>
  return %0 : tensor<3x3x5xf32>
}

// Windows that stay within their blocks need no neighbours.

func.func @patches(%x: tensor<1x16x3xf32>, %k: tensor<4x3x5xf32>) -> tensor<1x4x5xf32> {
  // expected-remark @below {{#alpa.rule<([1, (c d), b], [e, b, a]) -> ([1, c, a]) {a=5, b=3:sum, c=4, d=4:replicated, e=4:replicated} algebraic(0) algebraic(1) flops=480> leader}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {stride = [4]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x16x3xf32>, tensor<4x3x5xf32>) -> tensor<1x4x5xf32>
  return %0 : tensor<1x4x5xf32>
}

// Blocks of an input that has more rows than the result drift away from those of the result.

func.func @valid(%x: tensor<1x18x3xf32>, %k: tensor<3x3x5xf32>) -> tensor<1x16x5xf32> {
  // expected-remark @below {{#alpa.rule<([1, c, b], [d, b, a]) -> ([1, e, a]) {a=5, b=3:sum, c=18:replicated, d=3:replicated, e=16:replicated} algebraic(0) algebraic(1) flops=1440> leader}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x18x3xf32>, tensor<3x3x5xf32>) -> tensor<1x16x5xf32>
  return %0 : tensor<1x16x5xf32>
}

// -----

func.func @pooling(%a: tensor<4x16xf32>, %init: tensor<f32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // expected-remark @below {{#alpa.rule<([a, (b c)], []) -> ([a, b]) {a=4, b=8, c=2:replicated} flops=64> leader}}
  %0 = "stablehlo.reduce_window"(%a, %init) <{window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    // expected-remark @below {{follower}}
    %2 = stablehlo.maximum %x, %y : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<4x16xf32>, tensor<f32>) -> tensor<4x8xf32>
  // expected-remark @below {{#alpa.rule<([a, (b c)], []) -> ([a, b]) {a=4, b=8:windowed, c=2:replicated} flops=96> leader}}
  %1 = "stablehlo.reduce_window"(%a, %init) <{padding = dense<[[0, 0], [0, 1]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    // expected-remark @below {{follower}}
    %2 = stablehlo.maximum %x, %y : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<4x16xf32>, tensor<f32>) -> tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

// -----

// Padding that is not there is not told from the end of a block; what holds -inf is.

func.func @gradient_of_pooling(%a: tensor<16xf32>, %s: tensor<8xf32>, %init: tensor<f32>) -> (tensor<16xf32>, tensor<16xf32>) {
  // expected-remark @below {{#alpa.rule<([a], [b], []) -> ([c]) {a=16:replicated, b=8:replicated, c=16:replicated} flops=16> leader}}
  %0 = "stablehlo.select_and_scatter"(%a, %s, %init) <{padding = dense<[[0, 1]]> : tensor<1x2xi64>, window_dimensions = array<i64: 3>, window_strides = array<i64: 2>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    // expected-remark @below {{follower}}
    %2 = stablehlo.compare GE, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }, {
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    // expected-remark @below {{follower}}
    %2 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<16xf32>, tensor<8xf32>, tensor<f32>) -> tensor<16xf32>
  // expected-remark @below {{#alpa.rule<([(a b)], [a], []) -> ([(a b)]) {a=8:windowed, b=2:replicated} flops=16> leader}}
  %1 = "stablehlo.select_and_scatter"(%a, %s, %init) <{padding = dense<[[0, 1]]> : tensor<1x2xi64>, window_dimensions = array<i64: 3>, window_strides = array<i64: 2>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    // expected-remark @below {{follower}}
    %2 = stablehlo.compare GE, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }, {
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    // expected-remark @below {{follower}}
    %2 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) {alpa.explicit_padding} : (tensor<16xf32>, tensor<8xf32>, tensor<f32>) -> tensor<16xf32>
  return %0, %1 : tensor<16xf32>, tensor<16xf32>
}
