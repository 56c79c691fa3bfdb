// RUN: stablehlo-alpa-opt %s --split-input-file --verify-diagnostics

func.func @compare(%x: tensor<3xf32>, %y: tensor<3xi32>) -> tensor<3xi1> {
  // expected-error @+1 {{requires compatible element types for all operands, but got 'tensor<3xf32>' and 'tensor<3xi32>'}}
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
  // expected-error @+1 {{requires compatible element types for all operands and results, but got 'tensor<i32>' and 'tensor<3xf32>'}}
  %0 = stablehlo.clamp %min, %x, %max : (tensor<i32>, tensor<3xf32>, tensor<f32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @reduce_precision(%x: tensor<3xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{attribute 'exponent_bits' failed to satisfy constraint: 32-bit signless integer attribute whose value is positive}}
  %0 = stablehlo.reduce_precision %x, format = e0m7 : tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @optimization_barrier(%x: tensor<3xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{operands are of ('tensor<3xf32>'), results of ('tensor<4xf32>')}}
  %0 = "stablehlo.optimization_barrier"(%x) : (tensor<3xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
