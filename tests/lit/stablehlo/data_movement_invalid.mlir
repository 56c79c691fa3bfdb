// RUN: stablehlo-alpa-opt %s --split-input-file --verify-diagnostics

func.func @constant() -> tensor<3xf32> {
  // expected-error @+1 {{value must be of 'tensor<3xf32>', but got 'tensor<2xf32>'}}
  %0 = "stablehlo.constant"() {value = dense<0.0> : tensor<2xf32>} : () -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @iota() -> tensor<3xi32> {
  // expected-error @+1 {{iota dimension 1 is not in [0, 1)}}
  %0 = stablehlo.iota dim = 1 : tensor<3xi32>
  return %0 : tensor<3xi32>
}

// -----

func.func @reshape(%x: tensor<4xf32>) -> tensor<5xf32> {
  // expected-error @+1 {{number of result elements must be 4, but got 5}}
  %0 = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

func.func @reshape_type(%x: tensor<4xf32>) -> tensor<2x2xi32> {
  // expected-error @+1 {{requires compatible element types for all operands and results, but got 'tensor<4xf32>' and 'tensor<2x2xi32>'}}
  %0 = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<2x2xi32>
  return %0 : tensor<2x2xi32>
}

// -----

func.func @bitcast(%x: tensor<4xf32>) -> tensor<4x4xi16> {
  // expected-error @+1 {{tensor of the narrower elements must have size 2 in dimension 1, but got 4}}
  %0 = stablehlo.bitcast_convert %x : (tensor<4xf32>) -> tensor<4x4xi16>
  return %0 : tensor<4x4xi16>
}

// -----

func.func @bitcast_width(%x: tensor<4xf6E2M3FN>) -> tensor<4xi4> {
  // expected-error @+1 {{cannot take elements of 6 bits as elements of 4 bits}}
  %0 = stablehlo.bitcast_convert %x : (tensor<4xf6E2M3FN>) -> tensor<4xi4>
  return %0 : tensor<4xi4>
}

// -----

func.func @transpose(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  // expected-error @+1 {{permutation entry 5 is not in [0, 2)}}
  %0 = stablehlo.transpose %x, dims = [5, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// -----

func.func @transpose_twice(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  // expected-error @+1 {{permutation entry 0 appears twice}}
  %0 = stablehlo.transpose %x, dims = [0, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// -----

func.func @transpose_shape(%x: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{result must have size 3 in dimension 0, but got 2}}
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<2x3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @broadcast(%x: tensor<3xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{result must have size 3 in dimension 1, but got 4}}
  %0 = stablehlo.broadcast %x, sizes = [2] : (tensor<3xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @broadcast_in_dim_count(%x: tensor<3xf32>) -> tensor<2x3xf32> {
  // expected-error @+1 {{broadcast dimensions must number 1, but got 2}}
  %0 = stablehlo.broadcast_in_dim %x, dims = [0, 1] : (tensor<3xf32>) -> tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

// -----

func.func @broadcast_in_dim_size(%x: tensor<3xf32>) -> tensor<2x4xf32> {
  // expected-error @+1 {{operand size must be 4, but got 3}}
  %0 = stablehlo.broadcast_in_dim %x, dims = [1] : (tensor<3xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// -----

func.func @concatenate_nothing() -> tensor<0xf32> {
  // expected-error @+1 {{needs at least one operand}}
  %0 = "stablehlo.concatenate"() {dimension = 0 : i64} : () -> tensor<0xf32>
  return %0 : tensor<0xf32>
}

// -----

func.func @concatenate(%x: tensor<4x2xf32>, %y: tensor<3x2xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{operand 1 has size 3 in dimension 0, operand 0 has 4; only dimension 1 may differ}}
  %0 = stablehlo.concatenate %x, %y, dim = 1 : (tensor<4x2xf32>, tensor<3x2xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @concatenate_dim(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{attribute 'dimension' failed to satisfy constraint: 64-bit signless integer attribute whose value is non-negative}}
  %0 = stablehlo.concatenate %x, dim = -1 : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @concatenate_type(%x: tensor<4xf32>, %y: tensor<4xi32>) -> tensor<8xf32> {
  // expected-error @+1 {{operand 1 must be of 'f32', but got 'i32'}}
  %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<4xf32>, tensor<4xi32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @concatenate_result(%x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<9xf32> {
  // expected-error @+1 {{result must have size 8 in dimension 0, but got 9}}
  %0 = stablehlo.concatenate %x, %y, dim = 0 : (tensor<4xf32>, tensor<4xf32>) -> tensor<9xf32>
  return %0 : tensor<9xf32>
}

// -----

func.func @reverse(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{dimension 2 is not in [0, 1)}}
  %0 = stablehlo.reverse %x, dims = [2] : tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @slice(%x: tensor<4xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{range 2:9:1 does not fit dimension 0}}
  %0 = stablehlo.slice %x [2:9] : (tensor<4xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @slice_result(%x: tensor<4xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{result size must be 2, but got 3}}
  %0 = stablehlo.slice %x [0:4:2] : (tensor<4xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @pad_count(%x: tensor<4xf32>, %v: tensor<f32>) -> tensor<6xf32> {
  // expected-error @+1 {{low paddings must number 1, but got 2}}
  %0 = stablehlo.pad %x, %v, low = [1, 1], high = [1], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----

func.func @pad_value(%x: tensor<4xf32>, %v: tensor<1xf32>) -> tensor<6xf32> {
  // expected-error @+1 {{operand #1 must be 0D tensor}}
  %0 = stablehlo.pad %x, %v, low = [1], high = [1], interior = [0] : (tensor<4xf32>, tensor<1xf32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----

func.func @pad_interior(%x: tensor<4xf32>, %v: tensor<f32>) -> tensor<6xf32> {
  // expected-error @+1 {{interior padding -1 of dimension 0 is negative}}
  %0 = stablehlo.pad %x, %v, low = [1], high = [1], interior = [-1] : (tensor<4xf32>, tensor<f32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----

func.func @pad_nothing_left(%x: tensor<4xf32>, %v: tensor<f32>) -> tensor<0xf32> {
  // expected-error @+1 {{padding -3, -3, 0 leaves no size of dimension 0}}
  %0 = stablehlo.pad %x, %v, low = [-3], high = [-3], interior = [0] : (tensor<4xf32>, tensor<f32>) -> tensor<0xf32>
  return %0 : tensor<0xf32>
}

// -----

func.func @pad_huge(%x: tensor<4xf32>, %v: tensor<f32>) -> tensor<4xf32> {
  // expected-error @+1 {{leaves no size of dimension 0}}
  %0 = stablehlo.pad %x, %v, low = [9223372036854775807], high = [9223372036854775807], interior = [9223372036854775807] : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @pad_result(%x: tensor<4xf32>, %v: tensor<f32>) -> tensor<6xf32> {
  // expected-error @+1 {{result must have size 9 in dimension 0, but got 6}}
  %0 = stablehlo.pad %x, %v, low = [1], high = [1], interior = [1] : (tensor<4xf32>, tensor<f32>) -> tensor<6xf32>
  return %0 : tensor<6xf32>
}

// -----

func.func @dimension_size(%x: tensor<4xf32>) -> tensor<i32> {
  // expected-error @+1 {{dimension 1 is not in [0, 1)}}
  %0 = stablehlo.get_dimension_size %x, dim = 1 : (tensor<4xf32>) -> tensor<i32>
  return %0 : tensor<i32>
}
