// RUN: stablehlo-alpa-opt %s --split-input-file --verify-diagnostics

func.func @dimension_size(%x: tensor<?x8xf32>) -> tensor<i32> {
  // expected-error @+1 {{dimension 2 is not in [0, 2)}}
  %0 = stablehlo.get_dimension_size %x, dim = 2 : (tensor<?x8xf32>) -> tensor<i32>
  return %0 : tensor<i32>
}

// -----

func.func @set_size(%x: tensor<4x8xf32>, %n: tensor<i32>) {
  // expected-error @+1 {{result must be of 'tensor<4x?xf32, #stablehlo.bounds<?, 8>>', but got 'tensor<4x9xf32>'}}
  %0 = stablehlo.set_dimension_size %x, %n, dim = 1 : (tensor<4x8xf32>, tensor<i32>) -> tensor<4x9xf32>
  return
}

// -----

func.func @iota_dimension(%shape: tensor<2xi32>) {
  // expected-error @+1 {{iota dimension 2 is not in [0, 2)}}
  %0 = stablehlo.dynamic_iota %shape, dim = 2 : (tensor<2xi32>) -> tensor<?x?xf32>
  return
}

// -----

func.func @iota_shape() {
  %shape = stablehlo.constant dense<[3, 4]> : tensor<2xi32>
  // expected-error @+1 {{result must be of 'tensor<3x4xf32>', but got 'tensor<?x5xf32>'}}
  %0 = stablehlo.dynamic_iota %shape, dim = 0 : (tensor<2xi32>) -> tensor<?x5xf32>
  return
}

// -----

func.func @reshape_rank(%x: tensor<?x8xf32>, %shape: tensor<3xi32>) {
  // expected-error @+1 {{number of sizes must be 2, but got 3}}
  %0 = stablehlo.dynamic_reshape %x, %shape : (tensor<?x8xf32>, tensor<3xi32>) -> tensor<?x4xf32>
  return
}

// -----

func.func @reshape_count(%x: tensor<4x8xf32>) {
  %shape = stablehlo.constant dense<[3, 8]> : tensor<2xi32>
  // expected-error @+1 {{number of result elements must be 32, but got 24}}
  %0 = stablehlo.dynamic_reshape %x, %shape : (tensor<4x8xf32>, tensor<2xi32>) -> tensor<?x?xf32>
  return
}

// -----

func.func @broadcast_twice(%x: tensor<?x8xf32>, %shape: tensor<3xi32>) {
  // expected-error @+1 {{expanding or not expanding dimension 0 appears twice}}
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [1, 2] {known_expanding_dimensions = array<i64: 0>, known_nonexpanding_dimensions = array<i64: 0>} : (tensor<?x8xf32>, tensor<3xi32>) -> tensor<?x?x8xf32>
  return
}

// -----

func.func @broadcast_size(%x: tensor<4x8xf32>) {
  %shape = stablehlo.constant dense<[2, 4, 9]> : tensor<3xi32>
  // expected-error @+1 {{operand size must be 9, but got 8}}
  %0 = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [1, 2] : (tensor<4x8xf32>, tensor<3xi32>) -> tensor<?x?x?xf32>
  return
}

// -----

func.func @slice_indices(%x: tensor<4x8xf32>, %at: tensor<3xi32>) {
  // expected-error @+1 {{number of indices must be 2, but got 3}}
  %0 = stablehlo.real_dynamic_slice %x, %at, %at, %at : (tensor<4x8xf32>, tensor<3xi32>, tensor<3xi32>, tensor<3xi32>) -> tensor<?x?xf32>
  return
}

// -----

func.func @pad_interior(%x: tensor<4xf32>, %v: tensor<f32>, %pads: tensor<1xi32>) {
  %interior = stablehlo.constant dense<-1> : tensor<1xi32>
  // expected-error @+1 {{interior padding -1 is negative}}
  %0 = stablehlo.dynamic_pad %x, %v, %pads, %pads, %interior : (tensor<4xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<?xf32>
  return
}

// -----

func.func @pad_result(%x: tensor<4xf32>, %v: tensor<f32>) {
  %pads = stablehlo.constant dense<1> : tensor<1xi32>
  // expected-error @+1 {{result has size 8 in dimension 0, which 4 padded by 1, 1, 1 is not}}
  %0 = stablehlo.dynamic_pad %x, %v, %pads, %pads, %pads : (tensor<4xf32>, tensor<f32>, tensor<1xi32>, tensor<1xi32>, tensor<1xi32>) -> tensor<8xf32>
  return
}

// -----

func.func @gather_slice(%x: tensor<3x8xf32>, %at: tensor<5x1xi32>) {
  %sizes = stablehlo.constant dense<[2, 8]> : tensor<2xi32>
  // expected-error @+1 {{slice size 2 of dimension 0, which the result lacks, must be at most 1}}
  %0 = "stablehlo.dynamic_gather"(%x, %at, %sizes) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>} : (tensor<3x8xf32>, tensor<5x1xi32>, tensor<2xi32>) -> tensor<5x?xf32>
  return
}

// -----

func.func @convolution_padding(%x: tensor<1x8x8x3xf32>, %k: tensor<3x3x3x16xf32>, %pads: tensor<3x2xi64>) {
  // expected-error @+1 {{padding must have size 2 in dimension 0, but got 3}}
  %0 = "stablehlo.dynamic_conv"(%x, %k, %pads) {dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>, feature_group_count = 1 : i64, batch_group_count = 1 : i64} : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>, tensor<3x2xi64>) -> tensor<?x?x?x16xf32>
  return
}

// -----

// expected-error @+1 {{bounds must number 2, one for each dimension, but got 1}}
func.func private @bounds(tensor<?x?xf32, #stablehlo.type_extensions<bounds = [4]>>)

// -----

// expected-error @+1 {{dimension 0 is of size 3 and has a bound, 4; only a dynamic one may}}
func.func private @static_bound(tensor<3xf32, #stablehlo.bounds<4>>)

// -----

func.func @above_bound(%x: tensor<?xf32, #stablehlo.bounds<4>>, %y: tensor<5xf32>) {
  // expected-error @+2 {{size 5 is above the bound 4}}
  // expected-error @+1 {{failed to infer returned types}}
  %0 = stablehlo.add %x, %y : (tensor<?xf32, #stablehlo.bounds<4>>, tensor<5xf32>) -> tensor<5xf32>
  return
}
