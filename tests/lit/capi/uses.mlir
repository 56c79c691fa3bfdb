// RUN: not alpa-capi-test describe %s | FileCheck %s

// What a program does with its arguments, looked for through loops, conversions and transpositions:
// rows of a table are looked up (4) by indices (0), the matrix in the loop is contracted (2) and free
// (3), the transposed one likewise, experts are a batch (1), and of the last argument nothing is a
// product. It has not been planned, so that nothing is said of communication.

// CHECK-LABEL: communication:
// CHECK-NEXT: failed: {{.*}}has no 'alpa.mesh': it has not been planned
// CHECK-LABEL: boundary:
// CHECK: input_offset: 0 2 4 6 8 11 14
// CHECK: input_use: 4 0 0 0 2 3 3 2 1 2 3 0 0 0
module {
  func.func public @main(%t: tensor<32x8xf32>, %i: tensor<4x1xi32>, %w: tensor<8x8xf32>, %y: tensor<16x8xbf16>, %e: tensor<2x16x8xf32>, %z: tensor<2x4x8xf32>) -> (tensor<2x4x8xf32>, tensor<2x4x8xf32>) {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %0 = "stablehlo.gather"(%t, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 8>}> : (tensor<32x8xf32>, tensor<4x1xi32>) -> tensor<4x8xf32>
    %1:3 = stablehlo.while(%n = %zero, %h = %0, %v = %w) : tensor<i32>, tensor<4x8xf32>, tensor<8x8xf32>
    cond {
      %end = stablehlo.constant dense<3> : tensor<i32>
      %p = stablehlo.compare LT, %n, %end : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %p : tensor<i1>
    } do {
      %one = stablehlo.constant dense<1> : tensor<i32>
      %k = stablehlo.add %n, %one : tensor<i32>
      %d = stablehlo.dot_general %h, %v, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x8xf32>) -> tensor<4x8xf32>
      stablehlo.return %k, %d, %v : tensor<i32>, tensor<4x8xf32>, tensor<8x8xf32>
    }
    %2 = stablehlo.transpose %y, dims = [1, 0] : (tensor<16x8xbf16>) -> tensor<8x16xbf16>
    %3 = stablehlo.convert %2 : (tensor<8x16xbf16>) -> tensor<8x16xf32>
    %4 = stablehlo.dot_general %1#1, %3, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x16xf32>) -> tensor<4x16xf32>
    %5 = stablehlo.broadcast_in_dim %4, dims = [1, 2] : (tensor<4x16xf32>) -> tensor<2x4x16xf32>
    %6 = stablehlo.dot_general %5, %e, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<2x4x16xf32>, tensor<2x16x8xf32>) -> tensor<2x4x8xf32>
    %7 = stablehlo.tanh %z : tensor<2x4x8xf32>
    return %6, %7 : tensor<2x4x8xf32>, tensor<2x4x8xf32>
  }
}
