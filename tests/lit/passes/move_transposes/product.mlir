// RUN: stablehlo-alpa-opt %s -alpa-move-transposes -split-input-file | FileCheck %s

// The gradient of a kernel is made in the order of the kernel; each operand keeps its precision.

// CHECK-LABEL: @kernel
// CHECK-SAME: (%[[G:.+]]: tensor<8x4xf32>, %[[X:.+]]: tensor<8x6xf32>)
// CHECK-NEXT: %[[DOT:.+]] = stablehlo.dot_general %[[X]], %[[G]], contracting_dims = [0] x [0], precision = [HIGH, DEFAULT] : (tensor<8x6xf32>, tensor<8x4xf32>) -> tensor<6x4xf32>
// CHECK-NEXT: return %[[DOT]]
func.func @kernel(%g: tensor<8x4xf32>, %x: tensor<8x6xf32>) -> tensor<6x4xf32> {
  %0 = stablehlo.dot_general %g, %x, contracting_dims = [0] x [0], precision = [DEFAULT, HIGH] : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  return %1 : tensor<6x4xf32>
}

// -----

// So does the algorithm, which names the types of both.

// CHECK-LABEL: @algorithm
// CHECK: stablehlo.dot_general %arg1, %arg0, contracting_dims = [0] x [0], algorithm = <lhs_precision_type = f8E4M3FN, rhs_precision_type = f8E5M2, accumulation_type = f32,
// CHECK-NEXT: return
func.func @algorithm(%g: tensor<8x4xf8E5M2>, %x: tensor<8x6xf8E4M3FN>) -> tensor<6x4xf32> {
  %0 = stablehlo.dot_general %g, %x, contracting_dims = [0] x [0], algorithm = <lhs_precision_type = f8E5M2, rhs_precision_type = f8E4M3FN, accumulation_type = f32, lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 1, allow_imprecise_accumulation = false> : (tensor<8x4xf8E5M2>, tensor<8x6xf8E4M3FN>) -> tensor<4x6xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  return %1 : tensor<6x4xf32>
}

// -----

// Experts in a batch of two dimensions that change places, tokens in two.

// CHECK-LABEL: @experts
// CHECK-NEXT: %[[DOT:.+]] = stablehlo.dot_general %arg1, %arg0, batching_dims = [2, 0] x [3, 1], contracting_dims = [1, 3] x [0, 2] : (tensor<2x5x3x7x6xf32>, tensor<5x2x7x3x4xf32>) -> tensor<3x2x6x4xf32>
// CHECK-NEXT: return %[[DOT]]
func.func @experts(%g: tensor<5x2x7x3x4xf32>, %x: tensor<2x5x3x7x6xf32>) -> tensor<3x2x6x4xf32> {
  %0 = stablehlo.dot_general %g, %x, batching_dims = [1, 3] x [0, 2], contracting_dims = [0, 2] x [1, 3] : (tensor<5x2x7x3x4xf32>, tensor<2x5x3x7x6xf32>) -> tensor<2x3x4x6xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0, 3, 2] : (tensor<2x3x4x6xf32>) -> tensor<3x2x6x4xf32>
  return %1 : tensor<3x2x6x4xf32>
}

// -----

// Scores of grouped queries, keys in front, are read with the queries of a group in front. The queries are less than the scores.

// CHECK-LABEL: @grouped_queries
// CHECK-SAME: (%[[K:.+]]: tensor<2x32x3x8xf32>, %[[Q:.+]]: tensor<2x32x3x4x8xf32>)
// CHECK-NEXT: %[[MOVED:.+]] = stablehlo.transpose %[[Q]], dims = [0, 2, 3, 1, 4]
// CHECK-NEXT: %[[DOT:.+]] = stablehlo.dot_general %[[MOVED]], %[[K]], batching_dims = [0, 1] x [0, 2], contracting_dims = [4] x [3] : (tensor<2x3x4x32x8xf32>, tensor<2x32x3x8xf32>) -> tensor<2x3x4x32x32xf32>
// CHECK-NEXT: return %[[DOT]]
func.func @grouped_queries(%k: tensor<2x32x3x8xf32>, %q: tensor<2x32x3x4x8xf32>) -> tensor<2x3x4x32x32xf32> {
  %0 = stablehlo.dot_general %k, %q, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [4] : (tensor<2x32x3x8xf32>, tensor<2x32x3x4x8xf32>) -> tensor<2x3x32x32x4xf32>
  %1 = stablehlo.transpose %0, dims = [0, 1, 4, 3, 2] : (tensor<2x3x32x32x4xf32>) -> tensor<2x3x4x32x32xf32>
  return %1 : tensor<2x3x4x32x32xf32>
}

// -----

// Of few keys the scores are less, and stay what is transposed.

// CHECK-LABEL: @few_keys
// CHECK: stablehlo.dot_general %arg0, %arg1
// CHECK-NEXT: stablehlo.transpose
func.func @few_keys(%k: tensor<2x4x3x8xf32>, %q: tensor<2x32x3x4x8xf32>) -> tensor<2x3x4x32x4xf32> {
  %0 = stablehlo.dot_general %k, %q, batching_dims = [0, 2] x [0, 2], contracting_dims = [3] x [4] : (tensor<2x4x3x8xf32>, tensor<2x32x3x4x8xf32>) -> tensor<2x3x4x32x4xf32>
  %1 = stablehlo.transpose %0, dims = [0, 1, 4, 3, 2] : (tensor<2x3x4x32x4xf32>) -> tensor<2x3x4x32x4xf32>
  return %1 : tensor<2x3x4x32x4xf32>
}

// -----

// What goes between others is no order of a product: a dimension of the batch, one of the other operand.

// CHECK-LABEL: @between
// CHECK: stablehlo.dot_general
// CHECK-NEXT: stablehlo.transpose
// CHECK: stablehlo.dot_general
// CHECK-NEXT: stablehlo.transpose
func.func @between(%g: tensor<2x8x4xf32>, %x: tensor<2x8x6xf32>, %y: tensor<8x3x6xf32>) -> (tensor<6x2x4xf32>, tensor<3x2x4x6xf32>) {
  %0 = stablehlo.dot_general %g, %x, batching_dims = [0] x [0], contracting_dims = [1] x [1] : (tensor<2x8x4xf32>, tensor<2x8x6xf32>) -> tensor<2x4x6xf32>
  %1 = stablehlo.transpose %0, dims = [2, 0, 1] : (tensor<2x4x6xf32>) -> tensor<6x2x4xf32>
  %2 = stablehlo.dot_general %g, %y, contracting_dims = [1] x [0] : (tensor<2x8x4xf32>, tensor<8x3x6xf32>) -> tensor<2x4x3x6xf32>
  %3 = stablehlo.transpose %2, dims = [2, 0, 1, 3] : (tensor<2x4x3x6xf32>) -> tensor<3x2x4x6xf32>
  return %1, %3 : tensor<6x2x4xf32>, tensor<3x2x4x6xf32>
}

// -----

// Somebody else reads the product in its own order.

// CHECK-LABEL: @read_twice
// CHECK: stablehlo.dot_general %arg0, %arg1
// CHECK-NEXT: stablehlo.transpose
func.func @read_twice(%g: tensor<8x4xf32>, %x: tensor<8x6xf32>) -> (tensor<6x4xf32>, tensor<4x6xf32>) {
  %0 = stablehlo.dot_general %g, %x, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
  return %1, %0 : tensor<6x4xf32>, tensor<4x6xf32>
}
