// RUN: stablehlo-alpa-opt %s --split-input-file --verify-diagnostics

func.func @reduce_dims(%x: tensor<3x4xf32>, %v: tensor<f32>) -> tensor<3xf32> {
  // expected-error @+1 {{dimension 2 is not in [0, 2)}}
  %0 = stablehlo.reduce(%x init: %v) applies stablehlo.add across dimensions = [2] : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @reduce_result(%x: tensor<3x4xf32>, %v: tensor<f32>) -> tensor<4xf32> {
  // expected-error @+1 {{result must have size 3 in dimension 0, but got 4}}
  %0 = stablehlo.reduce(%x init: %v) applies stablehlo.add across dimensions = [1] : (tensor<3x4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @reduce_init(%x: tensor<3x4xf32>, %v: tensor<1xf32>) -> tensor<3xf32> {
  // expected-error @+1 {{the body must return a tensor of the shape of 'tensor<1xf32>', but got 'tensor<f32>'}}
  %0 = "stablehlo.reduce"(%x, %v) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) {dimensions = array<i64: 1>} : (tensor<3x4xf32>, tensor<1xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @reduce_body(%x: tensor<3x4xf32>, %v: tensor<f32>) -> tensor<3xf32> {
  // expected-error @+1 {{the body must return a tensor of the shape of 'tensor<f32>', but got 'tensor<1xf32>'}}
  %0 = "stablehlo.reduce"(%x, %v) ({
  ^bb0(%a: tensor<1xf32>, %b: tensor<1xf32>):
    stablehlo.return %a : tensor<1xf32>
  }) {dimensions = array<i64: 1>} : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @reduce_inputs(%x: tensor<3x4xf32>, %y: tensor<3x5xi32>, %v: tensor<f32>, %w: tensor<i32>) -> tensor<3xf32> {
  // expected-error @+1 {{input 1 must have size 4 in dimension 1, but got 5}}
  %0:2 = "stablehlo.reduce"(%x, %y, %v, %w) ({
  ^bb0(%a: tensor<f32>, %i: tensor<i32>, %b: tensor<f32>, %j: tensor<i32>):
    stablehlo.return %a, %i : tensor<f32>, tensor<i32>
  }) {dimensions = array<i64: 1>} : (tensor<3x4xf32>, tensor<3x5xi32>, tensor<f32>, tensor<i32>) -> (tensor<3xf32>, tensor<3xi32>)
  return %0#0 : tensor<3xf32>
}

// -----

func.func @window_count(%x: tensor<4xf32>, %v: tensor<f32>) -> tensor<4xf32> {
  // expected-error @+1 {{window dimensions must number 1, but got 2}}
  %0 = "stablehlo.reduce_window"(%x, %v) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) {window_dimensions = array<i64: 1, 1>} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @window_size(%x: tensor<4xf32>, %v: tensor<f32>) -> tensor<4xf32> {
  // expected-error @+1 {{window size must be at least 1, but got 0}}
  %0 = "stablehlo.reduce_window"(%x, %v) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) {window_dimensions = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @window_strides(%x: tensor<4xf32>, %v: tensor<f32>) -> tensor<4xf32> {
  // expected-error @+1 {{window strides must be at least 1, but got 0}}
  %0 = "stablehlo.reduce_window"(%x, %v) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) {window_dimensions = array<i64: 2>, window_strides = array<i64: 0>} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @window_padding(%x: tensor<4xf32>, %v: tensor<f32>) -> tensor<4xf32> {
  // expected-error @+1 {{padding must be a tensor of 1 x 2, but got 'tensor<2x2xi64>'}}
  %0 = "stablehlo.reduce_window"(%x, %v) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) {window_dimensions = array<i64: 2>, padding = dense<0> : tensor<2x2xi64>} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @window_result(%x: tensor<4xf32>, %v: tensor<f32>) -> tensor<4xf32> {
  // expected-error @+1 {{result must have size 2 in dimension 0, but got 4}}
  %0 = "stablehlo.reduce_window"(%x, %v) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) {window_dimensions = array<i64: 2>, window_strides = array<i64: 2>} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @window_huge(%x: tensor<4xf32>, %v: tensor<f32>) -> tensor<4xf32> {
  // expected-error @+1 {{result must have size 0 in dimension 0, but got 4}}
  %0 = "stablehlo.reduce_window"(%x, %v) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) {window_dimensions = array<i64: 9223372036854775807>, window_dilations = array<i64: 9223372036854775807>} : (tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @select_and_scatter(%x: tensor<4xf32>, %s: tensor<3xf32>, %v: tensor<f32>) -> tensor<4xf32> {
  // expected-error @+1 {{source must have size 2 in dimension 0, but got 3}}
  %0 = "stablehlo.select_and_scatter"(%x, %s, %v) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {window_dimensions = array<i64: 2>, window_strides = array<i64: 2>} : (tensor<4xf32>, tensor<3xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @sort_dimension(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{dimension 1 is not in [-1, 1)}}
  %0 = "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) {dimension = 1 : i64} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @sort_comparator(%x: tensor<4xf32>, %y: tensor<4xi32>) -> tensor<4xf32> {
  // expected-error @+1 {{comparator arguments must number 4, but got 2}}
  %0:2 = "stablehlo.sort"(%x, %y) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) {dimension = 0 : i64} : (tensor<4xf32>, tensor<4xi32>) -> (tensor<4xf32>, tensor<4xi32>)
  return %0#0 : tensor<4xf32>
}

// -----

func.func @sort_types(%x: tensor<4xf32>) -> tensor<4xi32> {
  // expected-error @+1 {{inputs are of ('tensor<4xf32>'), results of ('tensor<4xi32>')}}
  %0 = "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %p = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  }) {dimension = 0 : i64} : (tensor<4xf32>) -> tensor<4xi32>
  return %0 : tensor<4xi32>
}

// -----

func.func @map_dimensions(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  // expected-error @+1 {{dimensions must be 0 to 1 in order, but got [1, 0]}}
  %0 = "stablehlo.map"(%x) ({
  ^bb0(%a: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) {dimensions = array<i64: 1, 0>} : (tensor<4x5xf32>) -> tensor<4x5xf32>
  return %0 : tensor<4x5xf32>
}

// -----

func.func @reduce_elements(%x: tensor<3x4xf32>, %v: tensor<f32>) -> tensor<3xi32> {
  // expected-error @+1 {{the body accumulates 'i32', to which 'f32' and 'f32' cannot be promoted}}
  %0 = "stablehlo.reduce"(%x, %v) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    stablehlo.return %a : tensor<i32>
  }) {dimensions = array<i64: 1>} : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xi32>
  return %0 : tensor<3xi32>
}

// -----

func.func @reduce_arguments(%x: tensor<3x4xf32>, %v: tensor<f32>) -> tensor<3xf32> {
  // expected-error @+1 {{the body returns 'tensor<f32>', but argument 1 is of 'tensor<i32>'}}
  %0 = "stablehlo.reduce"(%x, %v) ({
  ^bb0(%a: tensor<f32>, %b: tensor<i32>):
    stablehlo.return %a : tensor<f32>
  }) {dimensions = array<i64: 1>} : (tensor<3x4xf32>, tensor<f32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// -----

func.func @reduce_accumulated(%x: tensor<3x4xbf16>, %v: tensor<f32>) -> tensor<3xbf16> {
  // expected-error @+1 {{result must be of 'f32', which is accumulated, but got 'bf16'}}
  %0 = "stablehlo.reduce"(%x, %v) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) {dimensions = array<i64: 1>} : (tensor<3x4xbf16>, tensor<f32>) -> tensor<3xbf16>
  return %0 : tensor<3xbf16>
}

// -----

func.func @sort_comparator(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{the comparator must return tensor<i1>, but got 'tensor<f32>'}}
  %0 = "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    stablehlo.return %a : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @sort_arguments(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{argument 0 of the comparator must be of 'tensor<f32>', but got 'tensor<i32>'}}
  %0 = "stablehlo.sort"(%x) ({
  ^bb0(%a: tensor<i32>, %b: tensor<i32>):
    %1 = stablehlo.compare LT, %a, %b : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
