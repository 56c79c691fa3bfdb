// RUN: stablehlo-alpa-opt %s --split-input-file --verify-diagnostics

func.func @dot_general(%x: tensor<4x5xf32>, %y: tensor<6x7xf32>) -> tensor<4x7xf32> {
  // expected-error @+1 {{rhs size must be 5, but got 6}}
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x5xf32>, tensor<6x7xf32>) -> tensor<4x7xf32>
  return %0 : tensor<4x7xf32>
}

// -----

func.func @dot_general_dims(%x: tensor<4x5xf32>, %y: tensor<5x7xf32>) -> tensor<4x7xf32> {
  // expected-error @+1 {{lhs dimension 1 appears twice}}
  %0 = stablehlo.dot_general %x, %y, batching_dims = [1] x [1], contracting_dims = [1] x [0] : (tensor<4x5xf32>, tensor<5x7xf32>) -> tensor<4x7xf32>
  return %0 : tensor<4x7xf32>
}

// -----

func.func @dot_general_result(%x: tensor<4x5xf32>, %y: tensor<5x7xf32>) -> tensor<4x8xf32> {
  // expected-error @+1 {{result size must be 7, but got 8}}
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x5xf32>, tensor<5x7xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// -----

func.func @dot(%x: tensor<4x5x6xf32>, %y: tensor<6xf32>) -> tensor<4x5xf32> {
  // expected-error @+1 {{operands must have rank 1 or 2, but got 'tensor<4x5x6xf32>' and 'tensor<6xf32>'}}
  %0 = stablehlo.dot %x, %y : (tensor<4x5x6xf32>, tensor<6xf32>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

// -----

func.func @fft_count(%x: tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>> {
  // expected-error @+1 {{transforms 2 dimensions of 'tensor<8xcomplex<f32>>'}}
  %0 = stablehlo.fft %x, type = FFT, length = [8, 8] : (tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>>
  return %0 : tensor<8xcomplex<f32>>
}

// -----

func.func @fft_length(%x: tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>> {
  // expected-error @+1 {{operand must have size 9 in dimension 0, but got 8}}
  %0 = stablehlo.fft %x, type = FFT, length = [9] : (tensor<8xcomplex<f32>>) -> tensor<8xcomplex<f32>>
  return %0 : tensor<8xcomplex<f32>>
}

// -----

func.func @rfft(%x: tensor<8xf32>) -> tensor<8xcomplex<f32>> {
  // expected-error @+1 {{result must have size 5 in dimension 0, but got 8}}
  %0 = stablehlo.fft %x, type = RFFT, length = [8] : (tensor<8xf32>) -> tensor<8xcomplex<f32>>
  return %0 : tensor<8xcomplex<f32>>
}

// -----

func.func @cholesky(%a: tensor<3x4xf32>) -> tensor<3x4xf32> {
  // expected-error @+1 {{number of columns of a must be 3, but got 4}}
  %0 = stablehlo.cholesky %a : tensor<3x4xf32>
  return %0 : tensor<3x4xf32>
}

// -----

func.func @triangular_solve(%a: tensor<3x3xf32>, %b: tensor<4x2xf32>) -> tensor<4x2xf32> {
  // expected-error @+1 {{size of b must be 3, but got 4}}
  %0 = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose NO_TRANSPOSE>} : (tensor<3x3xf32>, tensor<4x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// -----

func.func @rng_state(%s: tensor<2xui64>) -> tensor<4xui32> {
  // expected-error @+1 {{state must be of 'tensor<2xui64>', but got 'tensor<3xui64>'}}
  %0, %1 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<3xui64>, tensor<4xui32>)
  return %1 : tensor<4xui32>
}

// -----

func.func @top_k(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{k = -1 must not be negative}}
  %0, %1 = "chlo.top_k"(%x) {k = -1 : i64} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<4xi32>)
  return %0 : tensor<4xf32>
}

// -----

func.func @precisions(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>) {
  // expected-error @+1 {{takes a precision for each of 2 operands, but got 3}}
  %0 = stablehlo.dot %a, %b, precision = [DEFAULT, DEFAULT, DEFAULT] : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @algorithm(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>) {
  // expected-error @+1 {{no hardware is known to multiply 1 x 'f32' and 1 x 'f64' into 'f32' in 1 operations}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], algorithm = <lhs_precision_type = f32, rhs_precision_type = f64, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @algorithm_and_precision(%a: tensor<3x4xf32>, %b: tensor<4x5xf32>) {
  // expected-error @+1 {{has an algorithm, and the precision HIGHEST beside it}}
  %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0], precision = [HIGHEST, DEFAULT], algorithm = <lhs_precision_type = f32, rhs_precision_type = f32, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<3x4xf32>, tensor<4x5xf32>) -> tensor<3x5xf32>
  return
}

// -----

func.func @solve_transpose(%a: tensor<4x4xf32>, %b: tensor<4x3xf32>) {
  // expected-error @+1 {{needs to know whether a is transposed}}
  %0 = "stablehlo.triangular_solve"(%a, %b) {left_side = true, lower = true, unit_diagonal = false, transpose_a = #stablehlo<transpose TRANSPOSE_INVALID>} : (tensor<4x4xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
  return
}

// -----

func.func @rng_shape(%a: tensor<f32>) {
  %shape = stablehlo.constant dense<[2, 3]> : tensor<2xi64>
  // expected-error @+1 {{result must be of 'tensor<2x3xf32>', but got 'tensor<2x4xf32>'}}
  %0 = stablehlo.rng %a, %a, %shape, distribution = UNIFORM : (tensor<f32>, tensor<f32>, tensor<2xi64>) -> tensor<2x4xf32>
  return
}

// -----

func.func @rng_normal(%a: tensor<i32>, %shape: tensor<1xi64>) {
  // expected-error @+1 {{a normal distribution has floating-point numbers, but got 'i32'}}
  %0 = stablehlo.rng %a, %a, %shape, distribution = NORMAL : (tensor<i32>, tensor<i32>, tensor<1xi64>) -> tensor<?xi32>
  return
}

// -----

func.func @fft_elements(%x: tensor<8xf32>) {
  // expected-error @+1 {{FFT takes complex numbers, but got 'f32'}}
  %0 = stablehlo.fft %x, type = FFT, length = [8] : (tensor<8xf32>) -> tensor<8xf32>
  return
}
