// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics

func.func @scalar(%x: tensor<f32>) {
  // expected-error @+1 {{needs an operand of rank at least 1, but got rank 0}}
  %0, %1 = "chlo.top_k"(%x) {k = 1 : i64} : (tensor<f32>) -> (tensor<1xf32>, tensor<1xi32>)
  return
}

// -----

func.func @too_many(%x: tensor<4xf32>) {
  // expected-error @+1 {{k = 5 is more than the last dimension's size 4}}
  %0, %1 = "chlo.top_k"(%x) {k = 5 : i64} : (tensor<4xf32>) -> (tensor<5xf32>, tensor<5xi32>)
  return
}

// -----

func.func @negative(%x: tensor<4xf32>) {
  // expected-error @+1 {{k = -1 must not be negative}}
  %0, %1 = "chlo.top_k"(%x) {k = -1 : i64} : (tensor<4xf32>) -> (tensor<1xf32>, tensor<1xi32>)
  return
}

// -----

func.func @other_shape(%x: tensor<3x4xf32>) {
  // expected-error @+1 {{result must be of 'tensor<3x2xf32>', but got 'tensor<4x2xf32>'}}
  %0, %1 = "chlo.top_k"(%x) {k = 2 : i64} : (tensor<3x4xf32>) -> (tensor<4x2xf32>, tensor<3x2xi32>)
  return
}

// -----

func.func @scan_of_nothing(%c: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{needs an input or an output}}
  %0 = "chlo.scan"(%c) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 0, 1>, resultSegmentSizes = array<i32: 0, 1>}> ({
  ^bb0(%a: tensor<4xf32>):
    stablehlo.return %a : tensor<4xf32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @broadcast_shape(%x: tensor<4x8xf32>, %v: tensor<8xf32>) {
  // expected-error @+1 {{result must have size 4 in dimension 0, but got 8}}
  %0 = chlo.broadcast_multiply %x, %v : (tensor<4x8xf32>, tensor<8xf32>) -> tensor<8x8xf32>
  return
}

// -----

func.func @scan_of_unequal_inputs(%x: tensor<8x4xf32>, %y: tensor<6x4xf32>) -> tensor<8x4xf32> {
  // expected-error @below {{runs through 8 slices, but 'tensor<6x4xf32>' has 6}}
  %0 = "chlo.scan"(%x, %y) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 2, 0>, resultSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    stablehlo.return %a : tensor<4xf32>
  }) : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @constant_like(%x: tensor<?xf32>) {
  // expected-error @+1 {{value must be of 'f32', but got 'i32'}}
  %0 = "chlo.constant_like"(%x) {value = 2 : i32} : (tensor<?xf32>) -> tensor<?xf32>
  return
}

// -----

func.func @scan_of_wrong_slices(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error @below {{argument 0 of the body is of 'tensor<8xf32>', expected 'tensor<4xf32>'}}
  %0 = "chlo.scan"(%x) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%a: tensor<8xf32>):
    stablehlo.return %a : tensor<8xf32>
  }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @ragged_groups(%lhs: tensor<11x5xf32>, %rhs: tensor<3x5x7xf32>, %sizes: tensor<4xi64>) {
  // expected-error @+1 {{size of the rhs group dimension must be 4, but got 3}}
  %0 = "chlo.ragged_dot"(%lhs, %rhs, %sizes) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>} : (tensor<11x5xf32>, tensor<3x5x7xf32>, tensor<4xi64>) -> tensor<11x7xf32>
  return
}

// -----

func.func @scan_without_such_a_dimension(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error @below {{dimension 2 is not one of argument 0, 'tensor<8x4xf32>'}}
  %0 = "chlo.scan"(%x) <{dimension = 2 : i64, operandSegmentSizes = array<i32: 1, 0>, resultSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%a: tensor<4xf32>):
    stablehlo.return %a : tensor<4xf32>
  }) : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @scan_with_too_few_results(%x: tensor<8x4xf32>, %c: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{the body has 2 results, but the scan has 1}}
  %0 = "chlo.scan"(%x, %c) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 0, 1>}> ({
  ^bb0(%a: tensor<4xf32>, %b: tensor<4xf32>):
    stablehlo.return %a, %b : tensor<4xf32>, tensor<4xf32>
  }) : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @ragged_result(%lhs: tensor<11x5xf32>, %rhs: tensor<3x5x7xf32>, %sizes: tensor<3xi64>) {
  // expected-error @+1 {{result must have size 7 in dimension 1, but got 5}}
  %0 = "chlo.ragged_dot"(%lhs, %rhs, %sizes) {ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>} : (tensor<11x5xf32>, tensor<3x5x7xf32>, tensor<3xi64>) -> tensor<11x5xf32>
  return
}

// -----

func.func @scan_without_a_carry(%x: tensor<8x4xf32>, %c: tensor<4xf32>) {
  // expected-error @below {{has 1 inits, but 0 carries}}
  %0 = "chlo.scan"(%x, %c) <{dimension = 0 : i64, operandSegmentSizes = array<i32: 1, 1>, resultSegmentSizes = array<i32: 1, 0>}> ({
  ^bb0(%input: tensor<4xf32>, %carry: tensor<4xf32>):
    stablehlo.return %input : tensor<4xf32>
  }) : (tensor<8x4xf32>, tensor<4xf32>) -> tensor<8x4xf32>
  return
}

// -----

func.func @text_of_a_scan_without_carries(%x: tensor<8x4xf32>, %c: tensor<4xf32>) {
  // expected-error @below {{2 inits need as many carries among the results, but there are 1}}
  %0 = chlo.scan(%x) inits (%c, %c) dimension=0 {
  ^bb0(%input: tensor<4xf32>, %a: tensor<4xf32>, %b: tensor<4xf32>):
    stablehlo.return %a, %b : tensor<4xf32>, tensor<4xf32>
  } : (tensor<8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return
}

// -----

func.func @broadcast_dimension_below_zero(%x: tensor<4x2xf32>, %v: tensor<2xf32>) {
  // expected-error @+1 {{broadcast_dimensions must not be negative, but got array<i64: -1>}}
  %0 = chlo.broadcast_add %x, %v {broadcast_dimensions = array<i64: -1>} : (tensor<4x2xf32>, tensor<2xf32>) -> tensor<4x2xf32>
  return
}
