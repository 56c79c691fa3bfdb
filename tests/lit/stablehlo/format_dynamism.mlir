// RUN: stablehlo-alpa-opt %s -o %t.once && stablehlo-alpa-opt %t.once | diff %t.once -
// RUN: stablehlo-alpa-opt %s -mlir-print-op-generic -o %t.generic && stablehlo-alpa-opt %t.generic | diff %t.once -
// RUN: FileCheck %s < %t.once

// Operations on sizes that are values, and types that bound them.

// CHECK-LABEL: @sizes
func.func @sizes(%x: tensor<?x8xf32>, %n: tensor<i32>) -> tensor<i32> {
  // CHECK: stablehlo.get_dimension_size %{{.*}}, dim = 0 : (tensor<?x8xf32>) -> tensor<i32>
  %0 = stablehlo.get_dimension_size %x, dim = 0 : (tensor<?x8xf32>) -> tensor<i32>
  // CHECK: stablehlo.set_dimension_size %{{.*}}, %{{.*}}, dim = 1 : (tensor<?x8xf32>, tensor<i32>) -> tensor<?x?xf32, #stablehlo.bounds<?, 8>>
  %1 = stablehlo.set_dimension_size %x, %n, dim = 1 : (tensor<?x8xf32>, tensor<i32>) -> tensor<?x?xf32, #stablehlo.bounds<?, 8>>
  return %0 : tensor<i32>
}

// CHECK-LABEL: @shapes
func.func @shapes(%x: tensor<?x8xf32>, %shape: tensor<3xi32>, %two: tensor<2xindex>) {
  // CHECK: stablehlo.dynamic_iota %{{.*}}, dim = 1 : (tensor<3xi32>) -> tensor<?x?x4xf32>
  %0 = stablehlo.dynamic_iota %shape, dim = 1 : (tensor<3xi32>) -> tensor<?x?x4xf32>
  // CHECK: stablehlo.dynamic_reshape %{{.*}}, %{{.*}} : (tensor<?x8xf32>, tensor<3xi32>) -> tensor<?x2x4xf32>
  %1 = stablehlo.dynamic_reshape %x, %shape : (tensor<?x8xf32>, tensor<3xi32>) -> tensor<?x2x4xf32>
  // CHECK: stablehlo.dynamic_broadcast_in_dim %{{.*}}, %{{.*}}, dims = [1, 2] {known_expanding_dimensions = array<i64: 0>} : (tensor<?x8xf32>, tensor<3xi32>) -> tensor<?x?x8xf32>
  %2 = stablehlo.dynamic_broadcast_in_dim %x, %shape, dims = [1, 2] {known_expanding_dimensions = array<i64: 0>} : (tensor<?x8xf32>, tensor<3xi32>) -> tensor<?x?x8xf32>
  // CHECK: stablehlo.real_dynamic_slice
  %3 = stablehlo.real_dynamic_slice %x, %two, %two, %two : (tensor<?x8xf32>, tensor<2xindex>, tensor<2xindex>, tensor<2xindex>) -> tensor<?x?xf32>
  return
}

// CHECK-LABEL: @movement
func.func @movement(%x: tensor<3x8xf32>, %v: tensor<f32>, %pads: tensor<2xi64>, %at: tensor<5x1xi32>, %sizes: tensor<2xi32>) {
  // CHECK: stablehlo.dynamic_pad
  %0 = stablehlo.dynamic_pad %x, %v, %pads, %pads, %pads : (tensor<3x8xf32>, tensor<f32>, tensor<2xi64>, tensor<2xi64>, tensor<2xi64>) -> tensor<?x?xf32>
  // CHECK: "stablehlo.dynamic_gather"
  %1 = "stablehlo.dynamic_gather"(%x, %at, %sizes) {dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1,>} : (tensor<3x8xf32>, tensor<5x1xi32>, tensor<2xi32>) -> tensor<5x?xf32>
  return
}

// CHECK-LABEL: @convolution
func.func @convolution(%x: tensor<?x8x8x3xf32>, %k: tensor<3x3x3x16xf32>, %pads: tensor<2x2xi64>) -> tensor<?x?x?x16xf32> {
  // CHECK: "stablehlo.dynamic_conv"
  // CHECK-SAME: dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>
  %0 = "stablehlo.dynamic_conv"(%x, %k, %pads) {
    dimension_numbers = #stablehlo.conv<raw
      input_batch_dimension = 0, input_feature_dimension = 3, input_spatial_dimensions = [1, 2],
      kernel_input_feature_dimension = 2, kernel_output_feature_dimension = 3, kernel_spatial_dimensions = [0, 1],
      output_batch_dimension = 0, output_feature_dimension = 3, output_spatial_dimensions = [1, 2]>,
    feature_group_count = 1 : i64, batch_group_count = 1 : i64
  } : (tensor<?x8x8x3xf32>, tensor<3x3x3x16xf32>, tensor<2x2xi64>) -> tensor<?x?x?x16xf32>
  return %0 : tensor<?x?x?x16xf32>
}

// Where one of two sizes is unknown, they may be the same.
// CHECK-LABEL: @compatible
func.func @compatible(%x: tensor<?x8xf32>, %y: tensor<4x?xf32>, %p: tensor<i1>) -> tensor<?x8xf32> {
  // CHECK: stablehlo.add %{{.*}}, %{{.*}} : (tensor<?x8xf32>, tensor<4x?xf32>) -> tensor<4x8xf32>
  %0 = stablehlo.add %x, %y : (tensor<?x8xf32>, tensor<4x?xf32>) -> tensor<4x8xf32>
  %1 = "stablehlo.if"(%p) ({
    stablehlo.return %0 : tensor<4x8xf32>
  }, {
    stablehlo.return %x : tensor<?x8xf32>
  }) : (tensor<i1>) -> tensor<?x8xf32>
  return %1 : tensor<?x8xf32>
}
