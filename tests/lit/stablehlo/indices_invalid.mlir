// RUN: stablehlo-alpa-opt %s --split-input-file --verify-diagnostics

func.func @transpose(%x: tensor<2x3xf32>) -> tensor<3x2xf32> {
  // expected-error @+1 {{permutation entry 5 is not in [0, 2)}}
  %0 = stablehlo.transpose %x, dims = [5, 0] : (tensor<2x3xf32>) -> tensor<3x2xf32>
  return %0 : tensor<3x2xf32>
}

// -----

func.func @slice(%x: tensor<4xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{range 2:9:1 does not fit dimension 0}}
  %0 = stablehlo.slice %x [2:9] : (tensor<4xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @dot(%x: tensor<4x5xf32>, %y: tensor<6x7xf32>) -> tensor<4x7xf32> {
  // expected-error @+1 {{rhs size must be 5, but got 6}}
  %0 = stablehlo.dot_general %x, %y, contracting_dims = [1] x [0] : (tensor<4x5xf32>, tensor<6x7xf32>) -> tensor<4x7xf32>
  return %0 : tensor<4x7xf32>
}

// -----

func.func @reshape(%x: tensor<4xf32>) -> tensor<5xf32> {
  // expected-error @+1 {{number of result elements must be 4, but got 5}}
  %0 = stablehlo.reshape %x : (tensor<4xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}
