// RUN: stablehlo-alpa-opt %s --split-input-file --verify-diagnostics

func.func @expressed(%x: tensor<4xf64>) {
  // expected-error @+1 {{result must express 'f64', but got 'f32'}}
  %0 = stablehlo.uniform_quantize %x : (tensor<4xf64>) -> tensor<4x!quant.uniform<i8:f32, 0.5>>
  return
}

// -----

func.func @dequantized(%x: tensor<4x!quant.uniform<i8:f32, 0.5>>) {
  // expected-error @+1 {{result must be of 'tensor<4xf32>', but got 'tensor<4xf64>'}}
  %0 = stablehlo.uniform_dequantize %x : (tensor<4x!quant.uniform<i8:f32, 0.5>>) -> tensor<4xf64>
  return
}

// -----

func.func @add_storage(%x: tensor<4x!quant.uniform<i8:f32, 0.5>>, %y: tensor<4x!quant.uniform<i16:f32, 0.5>>) {
  // expected-error @+1 {{quantized operands and results must have one storage type}}
  %0 = stablehlo.add %x, %y : (tensor<4x!quant.uniform<i8:f32, 0.5>>, tensor<4x!quant.uniform<i16:f32, 0.5>>) -> tensor<4x!quant.uniform<i8:f32, 0.5>>
  return
}

// -----

func.func @add_some(%x: tensor<4x!quant.uniform<i8:f32, 0.5>>, %y: tensor<4xf32>) {
  // expected-error @+1 {{quantizes some of its operands and its result, but not all}}
  %0 = stablehlo.add %x, %y : (tensor<4x!quant.uniform<i8:f32, 0.5>>, tensor<4xf32>) -> tensor<4x!quant.uniform<i8:f32, 0.5>>
  return
}

// -----

func.func @axis_sizes(%x: tensor<4x3x!quant.uniform<i8:f32:1, {0.5, 0.25}>>) {
  // expected-error @+1 {{operand #0 must be ranked tensor}}
  %0 = stablehlo.uniform_dequantize %x : (tensor<4x3x!quant.uniform<i8:f32:1, {0.5, 0.25}>>) -> tensor<4x3xf32>
  return
}

// -----

func.func @zero_point(%x: tensor<4x!quant.uniform<i8:f32, 0.5:300>>) {
  // expected-error @+1 {{operand #0 must be ranked tensor}}
  %0 = stablehlo.negate %x : tensor<4x!quant.uniform<i8:f32, 0.5:300>>
  return
}

// -----

func.func @transposed_axis(%x: tensor<2x2x!quant.uniform<i8:f32:1, {0.5, 0.25}>>) {
  // expected-error @+1 {{operand is quantized along dimension 1, the result along 0 of the operand}}
  %0 = stablehlo.transpose %x, dims = [0, 1] : (tensor<2x2x!quant.uniform<i8:f32:1, {0.5, 0.25}>>) -> tensor<2x2x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  return
}

// -----

func.func @reshaped_axis(%x: tensor<4x2x!quant.uniform<i8:f32:1, {0.5, 0.25}>>) {
  // expected-error @+1 {{number of elements before the quantized dimension must be 4, but got 1}}
  %0 = stablehlo.reshape %x : (tensor<4x2x!quant.uniform<i8:f32:1, {0.5, 0.25}>>) -> tensor<2x4x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  return
}

// -----

func.func @broadcast_axis(%x: tensor<1x!quant.uniform<i8:f32:0, {0.5}>>) {
  // expected-error @+1 {{result must have the operand's one scale and zero point everywhere}}
  %0 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<1x!quant.uniform<i8:f32:0, {0.5}>>) -> tensor<2x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  return
}

// -----

func.func @dot_zero_point(%x: tensor<4x2x!quant.uniform<i8:f32, 0.5>>, %w: tensor<2x3x!quant.uniform<i8:f32, 0.5:3>>) {
  // expected-error @+1 {{zero points of rhs must be 0, but got 3}}
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x2x!quant.uniform<i8:f32, 0.5>>, tensor<2x3x!quant.uniform<i8:f32, 0.5:3>>) -> tensor<4x3x!quant.uniform<i32:f32, 0.5>>
  return
}

// -----

func.func @dot_lhs_alone(%x: tensor<4x2x!quant.uniform<i8:f32, 0.5>>, %w: tensor<2x3xf32>) {
  // expected-error @+1 {{needs a quantized rhs}}
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x2x!quant.uniform<i8:f32, 0.5>>, tensor<2x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @add_per_axis(%x: tensor<4x2x!quant.uniform<i8:f32, 0.5>>) {
  // expected-error @+1 {{result must be quantized per axis if an operand is, and only then}}
  %0 = stablehlo.add %x, %x : (tensor<4x2x!quant.uniform<i8:f32, 0.5>>, tensor<4x2x!quant.uniform<i8:f32, 0.5>>) -> tensor<4x2x!quant.uniform<i8:f32:1, {0.5, 0.25}>>
  return
}

// -----

func.func @add_axes(%x: tensor<2x2x!quant.uniform<i8:f32:0, {0.5, 0.25}>>) {
  // expected-error @+1 {{operand is quantized along dimension 0, the result along 1}}
  %0 = stablehlo.add %x, %x : (tensor<2x2x!quant.uniform<i8:f32:0, {0.5, 0.25}>>, tensor<2x2x!quant.uniform<i8:f32:0, {0.5, 0.25}>>) -> tensor<2x2x!quant.uniform<i8:f32:1, {0.5, 0.25}>>
  return
}

// -----

func.func @transposed_scales(%x: tensor<2x2x!quant.uniform<i8:f32, 0.5>>) {
  // expected-error @+1 {{scales and zero points must be the same}}
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x2x!quant.uniform<i8:f32, 0.5>>) -> tensor<2x2x!quant.uniform<i8:f32, 0.25>>
  return
}

// -----

func.func @reshaped_scales(%x: tensor<4x2x!quant.uniform<i8:f32:1, {0.5, 0.25}>>) {
  // expected-error @+1 {{scales and zero points must be the same}}
  %0 = stablehlo.reshape %x : (tensor<4x2x!quant.uniform<i8:f32:1, {0.5, 0.25}>>) -> tensor<2x2x2x!quant.uniform<i8:f32:2, {0.5, 0.5}>>
  return
}

// -----

func.func @broadcast_axis(%x: tensor<2x!quant.uniform<i8:f32, 0.5>>) {
  // expected-error @+1 {{requires compatible element types for all operands and results}}
  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<2x!quant.uniform<i8:f32, 0.5>>) -> tensor<4x2x!quant.uniform<i8:f32:1, {0.5, 0.25}>>
  return
}

// -----

func.func @broadcast_to_another_axis(%x: tensor<2x!quant.uniform<i8:f32:0, {0.5, 0.25}>>) {
  // expected-error @+1 {{result is quantized along dimension 0, the operand's goes to 1}}
  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<2x!quant.uniform<i8:f32:0, {0.5, 0.25}>>) -> tensor<2x2x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  return
}

// -----

func.func @broadcast_along_its_axis(%x: tensor<1x!quant.uniform<i8:f32:0, {0.5}>>) {
  // expected-error @+1 {{result must have the operand's one scale and zero point everywhere}}
  %0 = stablehlo.broadcast_in_dim %x, dims = [0] : (tensor<1x!quant.uniform<i8:f32:0, {0.5}>>) -> tensor<2x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  return
}

// -----

func.func @hybrid_product(%x: tensor<4x2xbf16>, %w: tensor<2x3x!quant.uniform<i8:f32, 0.5>>) {
  // expected-error @+1 {{lhs and result must be of what rhs expresses, 'f32', but got 'bf16' and 'bf16'}}
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x2xbf16>, tensor<2x3x!quant.uniform<i8:f32, 0.5>>) -> tensor<4x3xbf16>
  return
}

// -----

func.func @product_per_axis(%x: tensor<4x2x!quant.uniform<i8:f32, 0.5>>, %w: tensor<2x2x!quant.uniform<i8:f32, 0.5>>) {
  // expected-error @+1 {{result is quantized per axis, rhs not}}
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x2x!quant.uniform<i8:f32, 0.5>>, tensor<2x2x!quant.uniform<i8:f32, 0.5>>) -> tensor<4x2x!quant.uniform<i32:f32:1, {0.5, 0.25}>>
  return
}

// -----

func.func @product_along_what_is_contracted(%x: tensor<4x2x!quant.uniform<i8:f32, 0.5>>, %w: tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>) {
  // expected-error @+1 {{rhs must not be quantized along dimension 0, which is contracted}}
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x2x!quant.uniform<i8:f32, 0.5>>, tensor<2x3x!quant.uniform<i8:f32:0, {0.5, 0.25}>>) -> tensor<4x3x!quant.uniform<i32:f32, 0.5>>
  return
}

// -----

func.func @kernel_axis(%x: tensor<1x8x2x!quant.uniform<i8:f32, 0.5>>, %k: tensor<3x2x2x!quant.uniform<i8:f32:1, {0.5, 0.25}>>) {
  // expected-error @+1 {{must be quantized along its output features, dimension 2}}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x2x!quant.uniform<i8:f32, 0.5>>, tensor<3x2x2x!quant.uniform<i8:f32:1, {0.5, 0.25}>>) -> tensor<1x6x2x!quant.uniform<i32:f32, 0.5>>
  return
}
