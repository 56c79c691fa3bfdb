// RUN: stablehlo-alpa-opt %s -alpa-move-transposes -split-input-file | FileCheck %s

// A kernel that is transposed is read as it lies.

// CHECK-LABEL: @kernel
// CHECK-NEXT: %[[DOT:.+]] = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [1] : (tensor<8x4xf32>, tensor<6x4xf32>) -> tensor<8x6xf32>
// CHECK-NEXT: return %[[DOT]]
func.func @kernel(%x: tensor<8x4xf32>, %w: tensor<6x4xf32>) -> tensor<8x6xf32> {
  %0 = stablehlo.transpose %w, dims = [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  return %1 : tensor<8x6xf32>
}

// -----

// Gradients of scores are read by two products as they are, in the order in which they lie: what one of them makes is less, and
// is transposed instead, what the other adds up is in another order.

// CHECK-LABEL: @scores
// CHECK-SAME: (%[[S:.+]]: tensor<2x3x4x32x32xf32>, %[[K:.+]]: tensor<2x32x3x8xf32>, %[[Q:.+]]: tensor<2x32x3x4x8xf32>)
// CHECK-DAG: %[[TO_Q:.+]] = stablehlo.dot_general %[[S]], %[[K]], batching_dims = [0, 1] x [0, 2], contracting_dims = [4] x [1] : {{.*}} -> tensor<2x3x4x32x8xf32>
// CHECK-DAG: %[[MOVED:.+]] = stablehlo.transpose %[[TO_Q]], dims = [0, 1, 3, 2, 4]
// CHECK-DAG: %[[TO_K:.+]] = stablehlo.dot_general %[[S]], %[[Q]], batching_dims = [0, 1] x [0, 2], contracting_dims = [2, 3] x [3, 1]
// CHECK: return %[[MOVED]], %[[TO_K]]
func.func @scores(%s: tensor<2x3x4x32x32xf32>, %k: tensor<2x32x3x8xf32>, %q: tensor<2x32x3x4x8xf32>) -> (tensor<2x3x32x4x8xf32>, tensor<2x3x32x8xf32>) {
  %0 = stablehlo.transpose %s, dims = [0, 1, 4, 3, 2] : (tensor<2x3x4x32x32xf32>) -> tensor<2x3x32x32x4xf32>
  %1 = stablehlo.dot_general %0, %k, batching_dims = [0, 1] x [0, 2], contracting_dims = [2] x [1] : (tensor<2x3x32x32x4xf32>, tensor<2x32x3x8xf32>) -> tensor<2x3x32x4x8xf32>
  %2 = stablehlo.dot_general %0, %q, batching_dims = [0, 1] x [0, 2], contracting_dims = [3, 4] x [1, 3] : (tensor<2x3x32x32x4xf32>, tensor<2x32x3x4x8xf32>) -> tensor<2x3x32x8xf32>
  return %1, %2 : tensor<2x3x32x4x8xf32>, tensor<2x3x32x8xf32>
}

// -----

// Both operands are one transposed value.

// CHECK-LABEL: @square
// CHECK-NEXT: %[[DOT:.+]] = stablehlo.dot_general %arg0, %arg0, contracting_dims = [1] x [1]
// CHECK-NEXT: return %[[DOT]]
func.func @square(%x: tensor<8x4xf32>) -> tensor<8x8xf32> {
  %0 = stablehlo.transpose %x, dims = [1, 0] : (tensor<8x4xf32>) -> tensor<4x8xf32>
  %1 = stablehlo.dot_general %0, %0, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<8x8xf32>
  return %1 : tensor<8x8xf32>
}

// -----

// Heads lie between what is added up and what is not: they would be moved before the product in any case.

// CHECK-LABEL: @heads
// CHECK: stablehlo.transpose
// CHECK-NEXT: stablehlo.dot_general
func.func @heads(%x: tensor<2x16x3x8xf32>, %y: tensor<2x3x16x8xf32>) -> tensor<2x3x16x16xf32> {
  %0 = stablehlo.transpose %x, dims = [0, 2, 1, 3] : (tensor<2x16x3x8xf32>) -> tensor<2x3x16x8xf32>
  %1 = stablehlo.dot_general %0, %y, batching_dims = [0, 1] x [0, 1], contracting_dims = [3] x [3] : (tensor<2x3x16x8xf32>, tensor<2x3x16x8xf32>) -> tensor<2x3x16x16xf32>
  return %1 : tensor<2x3x16x16xf32>
}

// -----

// Somebody else reads the transposed value, which is made in any case.

// CHECK-LABEL: @returned
// CHECK: stablehlo.transpose
// CHECK-NEXT: stablehlo.dot_general %arg0, %0
func.func @returned(%x: tensor<8x4xf32>, %w: tensor<6x4xf32>) -> (tensor<8x6xf32>, tensor<4x6xf32>) {
  %0 = stablehlo.transpose %w, dims = [1, 0] : (tensor<6x4xf32>) -> tensor<4x6xf32>
  %1 = stablehlo.dot_general %x, %0, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  return %1, %0 : tensor<8x6xf32>, tensor<4x6xf32>
}

// -----

// A loop reads a kernel as it lies; scores are transposed once in front of it, not what it makes of them each time.

// CHECK-LABEL: @loop
// CHECK: %[[S:.+]] = stablehlo.transpose %arg2
// CHECK: stablehlo.while
// CHECK: stablehlo.dot_general %{{.+}}, %arg1, contracting_dims = [1] x [1]
// CHECK: stablehlo.dot_general %[[S]], %{{.+}}, contracting_dims = [2] x [0]
func.func @loop(%x: tensor<4x4xf32>, %w: tensor<4x4xf32>, %s: tensor<4x9x4xf32>, %n: tensor<i32>) -> tensor<9x4x4xf32> {
  %moved = stablehlo.transpose %s, dims = [1, 0, 2] : (tensor<4x9x4xf32>) -> tensor<9x4x4xf32>
  %0 = stablehlo.transpose %w, dims = [1, 0] : (tensor<4x4xf32>) -> tensor<4x4xf32>
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %zeros = stablehlo.constant dense<0.0> : tensor<9x4x4xf32>
  %1:3 = stablehlo.while(%i = %zero, %v = %x, %u = %zeros) : tensor<i32>, tensor<4x4xf32>, tensor<9x4x4xf32>
  cond {
    %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %p : tensor<i1>
  } do {
    %one = stablehlo.constant dense<1> : tensor<i32>
    %j = stablehlo.add %i, %one : tensor<i32>
    %d = stablehlo.dot_general %v, %0, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
    %e = stablehlo.dot_general %moved, %d, contracting_dims = [2] x [0] : (tensor<9x4x4xf32>, tensor<4x4xf32>) -> tensor<9x4x4xf32>
    stablehlo.return %j, %d, %e : tensor<i32>, tensor<4x4xf32>, tensor<9x4x4xf32>
  }
  return %1#2 : tensor<9x4x4xf32>
}
