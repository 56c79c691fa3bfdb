// RUN: stablehlo-alpa-opt %s --alpa-pad-dimensions="multiple=4 most-added=0.2" -split-input-file 2>/dev/null | FileCheck %s

// Windows without padding: as many more behind as the input has. In the gradients of a convolution they
// are input and taps, with zeros behind them.
// CHECK-LABEL: func.func @main
// CHECK: %[[Y:.*]] = stablehlo.convolution(%arg0, %arg1) {{.*}} window = {pad = {{\[\[}}0, 2]]} {{.*}} -> tensor<1x16x3xf32>
// CHECK: %[[E:.*]] = stablehlo.exponential %[[Y]] : tensor<1x16x3xf32>
// CHECK: %[[Z:.*]] = stablehlo.select %{{.*}}, %[[E]], %{{.*}} : tensor<1x16x3xi1>, tensor<1x16x3xf32>
// CHECK: %[[CUT:.*]] = stablehlo.slice %[[Z]] [0:1, 0:14, 0:3]
// CHECK: %[[DX:.*]] = stablehlo.convolution(%[[Z]], %arg1) {{.*}} window = {pad = {{\[\[}}2, 0]], reverse = [true]} {{.*}} -> tensor<1x16x3xf32>
// CHECK: %[[DK:.*]] = stablehlo.convolution(%arg0, %[[Z]]) {{.*}} window = {pad = {{\[\[}}0, 2]]} {{.*}} -> tensor<3x3x3xf32>
// CHECK: return %[[CUT]], %[[DX]], %[[DK]]
func.func @main(%x: tensor<1x16x3xf32>, %k: tensor<3x3x3xf32>) -> (tensor<1x14x3xf32>, tensor<1x16x3xf32>, tensor<3x3x3xf32>) {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x16x3xf32>, tensor<3x3x3xf32>) -> tensor<1x14x3xf32>
  %1 = stablehlo.exponential %0 : tensor<1x14x3xf32>
  %2 = stablehlo.convolution(%1, %k) dim_numbers = [b, 0, f]x[0, o, i]->[b, 0, f], window = {pad = [[2, 2]], reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x14x3xf32>, tensor<3x3x3xf32>) -> tensor<1x16x3xf32>
  %3 = stablehlo.convolution(%x, %1) dim_numbers = [f, 0, b]x[i, 0, o]->[0, b, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x16x3xf32>, tensor<1x14x3xf32>) -> tensor<3x3x3xf32>
  return %1, %2, %3 : tensor<1x14x3xf32>, tensor<1x16x3xf32>, tensor<3x3x3xf32>
}

// -----

// Maximum pooling has as many more windows. In its gradient rows behind are never the largest, and windows
// behind add nothing.
// CHECK-LABEL: func.func @main
// CHECK: %[[Y:.*]] = stablehlo.convolution{{.*}} -> tensor<1x16x3xf32>
// CHECK: %[[LEAST:.*]] = stablehlo.constant dense<0xFF800000> : tensor<1x16x3xf32>
// CHECK: %[[ROWS:.*]] = stablehlo.select %{{.*}}, %[[Y]], %[[LEAST]]
// CHECK: "stablehlo.reduce_window"(%[[Y]], %{{.*}}) <{padding = dense<0> : tensor<3x2xi64>,
// CHECK: -> tensor<1x8x3xf32>
// CHECK: %[[E:.*]] = stablehlo.exponential
// CHECK: %[[ZERO:.*]] = stablehlo.constant dense<0.000000e+00> : tensor<1x8x3xf32>
// CHECK: %[[WINDOWS:.*]] = stablehlo.select %{{.*}}, %[[E]], %[[ZERO]]
// CHECK: %[[CUT:.*]] = stablehlo.slice %[[WINDOWS]] [0:1, 0:7, 0:3]
// CHECK: "stablehlo.select_and_scatter"(%[[ROWS]], %[[WINDOWS]], %{{.*}}) <{padding = dense<0> : tensor<3x2xi64>,
// CHECK: {alpa.explicit_padding} : (tensor<1x16x3xf32>, tensor<1x8x3xf32>, tensor<f32>) -> tensor<1x16x3xf32>
// CHECK: return %[[CUT]]
func.func @main(%x: tensor<1x16x3xf32>, %k: tensor<3x3x3xf32>) -> (tensor<1x7x3xf32>, tensor<1x14x3xf32>) {
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x16x3xf32>, tensor<3x3x3xf32>) -> tensor<1x14x3xf32>
  %1 = "stablehlo.reduce_window"(%0, %least) <{window_dimensions = array<i64: 1, 2, 1>, window_strides = array<i64: 1, 2, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %5 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %5 : tensor<f32>
  }) : (tensor<1x14x3xf32>, tensor<f32>) -> tensor<1x7x3xf32>
  %2 = stablehlo.exponential %1 : tensor<1x7x3xf32>
  %3 = "stablehlo.select_and_scatter"(%0, %2, %zero) <{window_dimensions = array<i64: 1, 2, 1>, window_strides = array<i64: 1, 2, 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %5 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %5 : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %5 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %5 : tensor<f32>
  }) : (tensor<1x14x3xf32>, tensor<1x7x3xf32>, tensor<f32>) -> tensor<1x14x3xf32>
  %4 = stablehlo.exponential %3 : tensor<1x14x3xf32>
  return %2, %4 : tensor<1x7x3xf32>, tensor<1x14x3xf32>
}
