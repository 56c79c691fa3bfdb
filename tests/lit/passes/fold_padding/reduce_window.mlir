// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-fold-padding | FileCheck %s

// The gradient of average pooling, as JAX writes it.

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.pad
// CHECK: "stablehlo.reduce_window"(%arg0, %{{.+}}) <{base_dilations = array<i64: 1, 2>, padding = dense<{{\[\[}}0, 0], [2, 1]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 3>}>
// CHECK: (tensor<4x8xf32>, tensor<f32>) -> tensor<4x16xf32>
func.func @main(%x: tensor<4x8xf32>) -> tensor<4x16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %other = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [0, 2], high = [0, 1], interior = [0, 1] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x18xf32>
  %1 = "stablehlo.reduce_window"(%0, %other) <{window_dimensions = array<i64: 1, 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<4x18xf32>, tensor<f32>) -> tensor<4x16xf32>
  return %1 : tensor<4x16xf32>
}

// -----

// Another number than the initial value stays what it is.

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.pad
// CHECK: "stablehlo.reduce_window"(%{{.+}}) <{window_dimensions = array<i64: 3>}>
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [1], high = [1], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<10xf32>
  %1 = "stablehlo.reduce_window"(%0, %low) <{window_dimensions = array<i64: 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.maximum %a, %b : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<10xf32>, tensor<f32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// Elements that are cut off, and windows with holes of their own, stay too.

// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: stablehlo.pad
func.func @main(%x: tensor<8xf32>) -> (tensor<6xf32>, tensor<19xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [-1], high = [1], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<8xf32>
  %1 = "stablehlo.reduce_window"(%0, %zero) <{window_dimensions = array<i64: 3>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %4 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) : (tensor<8xf32>, tensor<f32>) -> tensor<6xf32>
  %2 = stablehlo.pad %x, %zero, low = [1], high = [1], interior = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<10xf32>
  %3 = "stablehlo.reduce_window"(%2, %zero) <{base_dilations = array<i64: 2>, window_dimensions = array<i64: 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %4 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %4 : tensor<f32>
  }) : (tensor<10xf32>, tensor<f32>) -> tensor<19xf32>
  return %1, %3 : tensor<6xf32>, tensor<19xf32>
}
