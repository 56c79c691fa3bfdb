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
  // expected-error @+1 {{results must have the operand's shape with k = 2 last, but got 'tensor<4x2xf32>'}}
  %0, %1 = "chlo.top_k"(%x) {k = 2 : i64} : (tensor<3x4xf32>) -> (tensor<4x2xf32>, tensor<3x2xi32>)
  return
}
