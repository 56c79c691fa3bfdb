// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics

func.func @labels(%x: tensor<1x8x8x3xf32>, %k: tensor<3x3x3x16xf32>) {
  // expected-error @+1 {{expected 'b' and 'f' once each, but got 'b'}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, b]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x6x6x16xf32>
  return
}

// -----

func.func @missing_label(%x: tensor<1x8x8x3xf32>, %k: tensor<3x3x3x16xf32>) {
  // expected-error @+1 {{expected 'b' and 'f' once each}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x6x6x16xf32>
  return
}

// -----

func.func @spatial(%x: tensor<1x8x8x3xf32>, %k: tensor<3x3x3x16xf32>) {
  // expected-error @+1 {{spatial dimensions must be 0 to 1 once each, but got 2}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 2, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x6x6x16xf32>
  return
}

// -----

func.func @padding(%x: tensor<1x8x8x3xf32>, %k: tensor<3x3x3x16xf32>) {
  // expected-error @+1 {{padding needs 2 values for each dimension, but got 3}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 2, 3], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x6x6x16xf32>
  return
}

// -----

func.func @twice(%x: tensor<1x8x8x3xf32>, %k: tensor<3x3x3x16xf32>) {
  // expected-error @+1 {{window attribute 'stride' appears twice}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 1], stride = [2, 2]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x6x6x16xf32>
  return
}

// -----

func.func @unknown(%x: tensor<1x8x8x3xf32>, %k: tensor<3x3x3x16xf32>) {
  // expected-error @+1 {{unknown window attribute 'tilt'}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {tilt = [1, 1]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x6x6x16xf32>
  return
}

// -----

func.func @function_type(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected a function type of 2 operand(s) and 1 result, but got 1}}
  %0 = stablehlo.add %x, %x : (tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @complex(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected a tensor of complex numbers}}
  %0 = stablehlo.complex %x, %x : tensor<4xf32>
  return
}

// -----

func.func @format(%x: tensor<4xf32>) {
  // expected-error @+1 {{expected a format like e5m10, but got 'f5'}}
  %0 = stablehlo.reduce_precision %x, format = f5 : tensor<4xf32>
  return
}

// -----

func.func @select(%p: tensor<4xi1>, %x: tensor<4xf32>) {
  // expected-error @+1 {{expected two types or a function type of three operands}}
  %0 = stablehlo.select %p, %x, %x : tensor<4xi1>
  return
}
