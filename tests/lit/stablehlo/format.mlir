// RUN: stablehlo-alpa-opt %s -o %t.once && stablehlo-alpa-opt %t.once | diff %t.once -
// RUN: FileCheck %s < %t.once

// The forms that are not generic: printed as they are read.

// CHECK-LABEL: @convolution
func.func @convolution(%x: tensor<1x8x8x4xf32>, %k: tensor<3x3x2x16xf32>) -> tensor<1x9x4x16xf32> {
  // CHECK: dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 2], pad = {{\[\[}}1, 2], [0, 2]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [false, true]}
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {stride = [1, 2], pad = [[1, 2], [0, 2]], lhs_dilate = [1, 1], rhs_dilate = [1, 1], reverse = [0, 1]} {batch_group_count = 1 : i64, feature_group_count = 2 : i64} : (tensor<1x8x8x4xf32>, tensor<3x3x2x16xf32>) -> tensor<1x9x4x16xf32>
  return %0 : tensor<1x9x4x16xf32>
}

// CHECK-LABEL: @dot_general
func.func @dot_general(%a: tensor<2x3x4xf32>, %b: tensor<2x4x5xf32>) -> tensor<2x3x5xf32> {
  // CHECK: stablehlo.dot_general %{{.*}}, %{{.*}}, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [HIGHEST, DEFAULT]
  %0 = stablehlo.dot_general %a, %b, batching_dims = [0] x [0], contracting_dims = [2] x [1], precision = [HIGHEST, DEFAULT] : (tensor<2x3x4xf32>, tensor<2x4x5xf32>) -> tensor<2x3x5xf32>
  return %0 : tensor<2x3x5xf32>
}

// CHECK-LABEL: @dot
func.func @dot(%a: tensor<3x4xf32>, %b: tensor<4xf32>) -> tensor<3xf32> {
  // CHECK: stablehlo.dot %{{.*}}, %{{.*}}, precision = [DEFAULT, DEFAULT]
  %0 = stablehlo.dot %a, %b, precision = [DEFAULT, DEFAULT] : (tensor<3x4xf32>, tensor<4xf32>) -> tensor<3xf32>
  return %0 : tensor<3xf32>
}

// CHECK-LABEL: @elementwise
func.func @elementwise(%a: tensor<4xf32>, %b: tensor<4xf32>, %p: tensor<4xi1>, %q: tensor<i1>) -> tensor<4xf32> {
  // CHECK: stablehlo.add %{{.*}}, %{{.*}} : tensor<4xf32>
  %0 = stablehlo.add %a, %b : tensor<4xf32>
  // CHECK: stablehlo.compare LT, %{{.*}}, %{{.*}}, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %1 = stablehlo.compare LT, %a, %b, FLOAT : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  // CHECK: stablehlo.compare EQ, %{{.*}}, %{{.*}} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  %2 = stablehlo.compare EQ, %a, %b : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xi1>
  // CHECK: stablehlo.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<4xi1>, tensor<4xf32>
  %3 = stablehlo.select %1, %0, %b : tensor<4xi1>, tensor<4xf32>
  // CHECK: stablehlo.select %{{.*}} : tensor<i1>, tensor<4xf32>
  %4 = stablehlo.select %q, %3, %b : tensor<i1>, tensor<4xf32>
  // CHECK: stablehlo.clamp %{{.*}}, %{{.*}}, %{{.*}} : tensor<4xf32>
  %5 = stablehlo.clamp %a, %4, %b : tensor<4xf32>
  // CHECK: stablehlo.reduce_precision %{{.*}}, format = e5m10 : tensor<4xf32>
  %6 = stablehlo.reduce_precision %5, format = e5m10 : tensor<4xf32>
  // CHECK: stablehlo.convert %{{.*}} : (tensor<4xf32>) -> tensor<4xi32>
  %7 = stablehlo.convert %6 : (tensor<4xf32>) -> tensor<4xi32>
  // CHECK: stablehlo.not %{{.*}} : tensor<4xi32>
  %8 = stablehlo.not %7 : tensor<4xi32>
  %9 = stablehlo.convert %8 : (tensor<4xi32>) -> tensor<4xf32>
  return %9 : tensor<4xf32>
}

// CHECK-LABEL: @complex
func.func @complex(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: stablehlo.complex %{{.*}}, %{{.*}} : tensor<4xcomplex<f32>>
  %0 = stablehlo.complex %a, %b : tensor<4xcomplex<f32>>
  // CHECK: stablehlo.real %{{.*}} : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  %1 = stablehlo.real %0 : (tensor<4xcomplex<f32>>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: @movement
func.func @movement(%a: tensor<8x6xf32>, %i: tensor<i32>, %u: tensor<2x6xf32>) -> tensor<2x3xf32> {
  // CHECK: stablehlo.slice %{{.*}} [2:8:2, 0:6] : (tensor<8x6xf32>) -> tensor<3x6xf32>
  %0 = stablehlo.slice %a [2:8:2, 0:6] : (tensor<8x6xf32>) -> tensor<3x6xf32>
  // CHECK: stablehlo.transpose %{{.*}}, dims = [1, 0] : (tensor<3x6xf32>) -> tensor<6x3xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<3x6xf32>) -> tensor<6x3xf32>
  // CHECK: stablehlo.dynamic_slice %{{.*}}, %{{.*}}, %{{.*}}, sizes = [2, 3] : (tensor<6x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
  %2 = stablehlo.dynamic_slice %1, %i, %i, sizes = [2, 3] : (tensor<6x3xf32>, tensor<i32>, tensor<i32>) -> tensor<2x3xf32>
  // CHECK: stablehlo.reverse %{{.*}}, dims = [0] : tensor<2x3xf32>
  %3 = stablehlo.reverse %2, dims = [0] : tensor<2x3xf32>
  // CHECK: stablehlo.pad %{{.*}}, %{{.*}}, low = [0, 1], high = [0, -1], interior = [0, 0]
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %4 = stablehlo.pad %3, %c, low = [0, 1], high = [0, -1], interior = [0, 0] : (tensor<2x3xf32>, tensor<f32>) -> tensor<2x3xf32>
  // CHECK: stablehlo.concatenate %{{.*}}, %{{.*}}, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  %5 = stablehlo.concatenate %3, %4, dim = 1 : (tensor<2x3xf32>, tensor<2x3xf32>) -> tensor<2x6xf32>
  // CHECK: stablehlo.dynamic_update_slice
  %6 = stablehlo.dynamic_update_slice %a, %5, %i, %i : (tensor<8x6xf32>, tensor<2x6xf32>, tensor<i32>, tensor<i32>) -> tensor<8x6xf32>
  // CHECK: stablehlo.iota dim = 0 : tensor<2x3xf32>
  %7 = stablehlo.iota dim = 0 : tensor<2x3xf32>
  // CHECK: stablehlo.broadcast_in_dim %{{.*}}, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
  %8 = stablehlo.broadcast_in_dim %c, dims = [] : (tensor<f32>) -> tensor<2x3xf32>
  %9 = stablehlo.add %7, %8 : tensor<2x3xf32>
  // CHECK: stablehlo.optimization_barrier %{{.*}}, %{{.*}} : tensor<2x3xf32>, tensor<8x6xf32>
  %10:2 = stablehlo.optimization_barrier %9, %6 : tensor<2x3xf32>, tensor<8x6xf32>
  return %10#0 : tensor<2x3xf32>
}

// CHECK-LABEL: @reductions
func.func @reductions(%a: tensor<8x6xf32>, %c: tensor<f32>) -> (tensor<8xf32>, tensor<6xf32>) {
  // CHECK: stablehlo.reduce(%{{.*}} init: %{{.*}}) applies stablehlo.add across dimensions = [1] : (tensor<8x6xf32>, tensor<f32>) -> tensor<8xf32>
  %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [1] : (tensor<8x6xf32>, tensor<f32>) -> tensor<8xf32>
  // CHECK: stablehlo.reduce(%{{.*}} init: %{{.*}}) across dimensions = [0] : (tensor<8x6xf32>, tensor<f32>) -> tensor<6xf32>
  // CHECK: reducer(%{{.*}}: tensor<f32>, %{{.*}}: tensor<f32>) {
  %1 = stablehlo.reduce(%a init: %c) across dimensions = [0] : (tensor<8x6xf32>, tensor<f32>) -> tensor<6xf32>
    reducer(%x: tensor<f32>, %y: tensor<f32>) {
      %2 = stablehlo.multiply %x, %y : tensor<f32>
      %3 = stablehlo.add %2, %y : tensor<f32>
      stablehlo.return %3 : tensor<f32>
    }
  return %0, %1 : tensor<8xf32>, tensor<6xf32>
}

// CHECK-LABEL: @calls
func.func @calls(%a: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: stablehlo.custom_call @library(%{{.*}}) {backend_config = "x"} : (tensor<4xf32>) -> tensor<4xf32>
  %0 = stablehlo.custom_call @library(%a) {backend_config = "x"} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: chlo.erf %{{.*}} : tensor<4xf32> -> tensor<4xf32>
  %1 = chlo.erf %0 : tensor<4xf32> -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: @types_that_differ
func.func @types_that_differ(%p: tensor<?xi1>, %a: tensor<4xf32>, %b: tensor<?xf32>) -> tensor<?xf32> {
  // CHECK: stablehlo.select %{{.*}} : (tensor<?xi1>, tensor<4xf32>, tensor<?xf32>) -> tensor<?xf32>
  %0 = stablehlo.select %p, %a, %b : (tensor<?xi1>, tensor<4xf32>, tensor<?xf32>) -> tensor<?xf32>
  // CHECK: stablehlo.complex %{{.*}} : (tensor<4xf32>, tensor<?xf32>) -> tensor<?xcomplex<f32>>
  %1 = stablehlo.complex %a, %b : (tensor<4xf32>, tensor<?xf32>) -> tensor<?xcomplex<f32>>
  // CHECK: stablehlo.real %{{.*}} : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  %2 = stablehlo.real %1 : (tensor<?xcomplex<f32>>) -> tensor<?xf32>
  // CHECK: stablehlo.add %{{.*}}, %{{.*}} : tensor<?xf32>{{$}}
  %3 = stablehlo.add %0, %2 : (tensor<?xf32>, tensor<?xf32>) -> tensor<?xf32>
  return %3 : tensor<?xf32>
}
