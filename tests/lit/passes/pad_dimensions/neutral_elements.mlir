// RUN: stablehlo-alpa-opt %s -split-input-file --alpa-pad-dimensions=multiple=4 | FileCheck %s

// What stands behind the elements of the program is neutral in each kind of reduction, of each kind of numbers.

// The largest is neutral for the least.

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.constant dense<0x7F800000> : tensor<8x8xf32>
// CHECK: %[[FILLED:.+]] = stablehlo.select
// CHECK: stablehlo.reduce(%[[FILLED]] init: %{{.*}}) applies stablehlo.minimum across dimensions = [1]
// CHECK-NOT: stablehlo.slice
func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x5xf32>) -> tensor<8xf32> {
  %low = stablehlo.constant dense<0x7F800000> : tensor<f32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x5xf32>) -> tensor<8x5xf32>
  %1 = stablehlo.reduce(%0 init: %low) applies stablehlo.minimum across dimensions = [1] : (tensor<8x5xf32>, tensor<f32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// One for a product.

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.constant dense<1.000000e+00> : tensor<8x8xf32>
// CHECK: %[[FILLED:.+]] = stablehlo.select
// CHECK: stablehlo.reduce(%[[FILLED]] init: %{{.*}}) applies stablehlo.multiply across dimensions = [1]
// CHECK-NOT: stablehlo.slice
func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x5xf32>) -> tensor<8xf32> {
  %low = stablehlo.constant dense<1.0> : tensor<f32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x5xf32>) -> tensor<8x5xf32>
  %1 = stablehlo.reduce(%0 init: %low) applies stablehlo.multiply across dimensions = [1] : (tensor<8x5xf32>, tensor<f32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// All bits for an and.

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.constant dense<-1> : tensor<8x8xi32>
// CHECK: %[[FILLED:.+]] = stablehlo.select
// CHECK: stablehlo.reduce(%[[FILLED]] init: %{{.*}}) applies stablehlo.and across dimensions = [1]
// CHECK-NOT: stablehlo.slice
func.func @main(%x: tensor<8x8xi32>, %w: tensor<8x5xi32>) -> tensor<8xi32> {
  %low = stablehlo.constant dense<-1> : tensor<i32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xi32>, tensor<8x5xi32>) -> tensor<8x5xi32>
  %1 = stablehlo.reduce(%0 init: %low) applies stablehlo.and across dimensions = [1] : (tensor<8x5xi32>, tensor<i32>) -> tensor<8xi32>
  return %1 : tensor<8xi32>
}

// -----

// The largest without a sign.

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.constant dense<255> : tensor<8x8xui8>
// CHECK: %[[FILLED:.+]] = stablehlo.select
// CHECK: stablehlo.reduce(%[[FILLED]] init: %{{.*}}) applies stablehlo.minimum across dimensions = [1]
// CHECK-NOT: stablehlo.slice
func.func @main(%x: tensor<8x8xui8>, %w: tensor<8x5xui8>) -> tensor<8xui8> {
  %low = stablehlo.constant dense<255> : tensor<ui8>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xui8>, tensor<8x5xui8>) -> tensor<8x5xui8>
  %1 = stablehlo.reduce(%0 init: %low) applies stablehlo.minimum across dimensions = [1] : (tensor<8x5xui8>, tensor<ui8>) -> tensor<8xui8>
  return %1 : tensor<8xui8>
}

// -----

// Complex numbers whose exponential is not zero.

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.constant dense<(0.000000e+00,0.000000e+00)> : tensor<8x8xcomplex<f32>>
// CHECK: %[[FILLED:.+]] = stablehlo.select
// CHECK: stablehlo.reduce(%[[FILLED]] init: %{{.*}}) applies stablehlo.add across dimensions = [1]
// CHECK-NOT: stablehlo.slice
func.func @main(%x: tensor<8x8xcomplex<f32>>, %w: tensor<8x5xcomplex<f32>>) -> tensor<8xcomplex<f32>> {
  %low = stablehlo.constant dense<(0.0, 0.0)> : tensor<complex<f32>>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xcomplex<f32>>, tensor<8x5xcomplex<f32>>) -> tensor<8x5xcomplex<f32>>
  %e = stablehlo.exponential %0 : tensor<8x5xcomplex<f32>>
  %1 = stablehlo.reduce(%e init: %low) applies stablehlo.add across dimensions = [1] : (tensor<8x5xcomplex<f32>>, tensor<complex<f32>>) -> tensor<8xcomplex<f32>>
  return %1 : tensor<8xcomplex<f32>>
}
