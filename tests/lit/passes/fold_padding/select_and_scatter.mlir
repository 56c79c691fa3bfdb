// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-fold-padding | FileCheck %s

// The gradient of maximum pooling, as JAX writes it.

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.pad
// CHECK-NOT: stablehlo.slice
// CHECK: "stablehlo.select_and_scatter"(%arg0, %arg1, %{{.+}}) <{padding = dense<1> : tensor<1x2xi64>
// CHECK: alpa.explicit_padding
// CHECK-SAME: (tensor<16xf32>, tensor<8xf32>, tensor<f32>) -> tensor<16xf32>
func.func @main(%x: tensor<16xf32>, %s: tensor<8xf32>) -> tensor<16xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %low, low = [1], high = [1], interior = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<18xf32>
  %1 = "stablehlo.select_and_scatter"(%0, %s, %zero) <{window_dimensions = array<i64: 4>, window_strides = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<18xf32>, tensor<8xf32>, tensor<f32>) -> tensor<18xf32>
  %2 = stablehlo.slice %1 [1:17] : (tensor<18xf32>) -> tensor<16xf32>
  return %2 : tensor<16xf32>
}

// -----

// What is padded with zeros may be selected, and what is read besides has to be made.

// CHECK-LABEL: func.func @main
// CHECK-COUNT-2: stablehlo.slice
func.func @main(%x: tensor<16xf32>, %s: tensor<8xf32>) -> (tensor<16xf32>, tensor<16xf32>, tensor<18xf32>) {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %zero, low = [1], high = [1], interior = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<18xf32>
  %1 = "stablehlo.select_and_scatter"(%0, %s, %zero) <{window_dimensions = array<i64: 4>, window_strides = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %6 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %6 : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %6 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %6 : tensor<f32>
  }) : (tensor<18xf32>, tensor<8xf32>, tensor<f32>) -> tensor<18xf32>
  %2 = stablehlo.slice %1 [1:17] : (tensor<18xf32>) -> tensor<16xf32>
  %3 = stablehlo.pad %x, %low, low = [1], high = [1], interior = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<18xf32>
  %4 = "stablehlo.select_and_scatter"(%3, %s, %zero) <{window_dimensions = array<i64: 4>, window_strides = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %6 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %6 : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %6 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %6 : tensor<f32>
  }) : (tensor<18xf32>, tensor<8xf32>, tensor<f32>) -> tensor<18xf32>
  %5 = stablehlo.slice %4 [1:17] : (tensor<18xf32>) -> tensor<16xf32>
  return %2, %5, %4 : tensor<16xf32>, tensor<16xf32>, tensor<18xf32>
}

// -----

// Windows that do not overlap need no padding: JAX writes it all the same.

// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.pad
// CHECK: "stablehlo.select_and_scatter"(%arg0, %arg1, %{{.+}})
// CHECK-NOT: alpa.explicit_padding
// CHECK: return
func.func @main(%x: tensor<16xf32>, %s: tensor<8xf32>) -> tensor<16xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.pad %x, %low, low = [0], high = [0], interior = [0] : (tensor<16xf32>, tensor<f32>) -> tensor<16xf32>
  %1 = "stablehlo.select_and_scatter"(%0, %s, %zero) <{window_dimensions = array<i64: 2>, window_strides = array<i64: 2>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.compare GE, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  }, {
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<16xf32>, tensor<8xf32>, tensor<f32>) -> tensor<16xf32>
  return %1 : tensor<16xf32>
}
