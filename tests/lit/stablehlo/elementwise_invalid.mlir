// RUN: stablehlo-alpa-opt %s --split-input-file --verify-diagnostics

func.func @compare(%x: tensor<3xf32>, %y: tensor<3xi32>) -> tensor<3xi1> {
  // expected-error @+1 {{rhs must be of 'f32', but got 'i32'}}
  %0 = stablehlo.compare LT, %x, %y : (tensor<3xf32>, tensor<3xi32>) -> tensor<3xi1>
  return %0 : tensor<3xi1>
}

// -----

func.func @select_pred(%p: tensor<2xi1>, %x: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{pred must have size 3 in dimension 0, but got 2}}
  %0 = stablehlo.select %p, %x, %x : (tensor<2xi1>, tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @select_value(%p: tensor<i1>, %x: tensor<3xf32>, %y: tensor<4xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{on_false must have size 3 in dimension 0, but got 4}}
  %0 = "stablehlo.select"(%p, %x, %y) : (tensor<i1>, tensor<3xf32>, tensor<4xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @clamp(%min: tensor<2xf32>, %x: tensor<3xf32>, %max: tensor<f32>) -> tensor<3xf32> {
  // expected-error @+1 {{min must have size 3 in dimension 0, but got 2}}
  %0 = stablehlo.clamp %min, %x, %max : (tensor<2xf32>, tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @clamp_type(%min: tensor<i32>, %x: tensor<3xf32>, %max: tensor<f32>) -> tensor<3xf32> {
  // expected-error @+1 {{min must be of 'f32', but got 'i32'}}
  %0 = stablehlo.clamp %min, %x, %max : (tensor<i32>, tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @reduce_precision(%x: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{needs 1 exponent bit or more and 0 mantissa bits or more, but got 0 and 7}}
  %0 = stablehlo.reduce_precision %x, format = e0m7 : tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @optimization_barrier(%x: tensor<3xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{operands are of ('tensor<3xf32>'), results of ('tensor<4xf32>')}}
  %0 = "stablehlo.optimization_barrier"(%x) : (tensor<3xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
