// RUN: stablehlo-alpa-opt %s --alpa-pad-dimensions=multiple=4 | FileCheck %s

// Indices outside of a table mean its last row, which is no longer the last one.
// CHECK-LABEL: func.func @main
// CHECK: %[[T:.*]] = stablehlo.dot_general {{.*}} -> tensor<8x16xf32>
// CHECK: %[[I:.*]] = stablehlo.clamp %{{.*}}, %arg2, %{{.*}} : tensor<6x1xi32>
// CHECK: "stablehlo.gather"(%[[T]], %[[I]])
func.func @main(%x: tensor<5x8xf32>, %w: tensor<8x16xf32>, %i: tensor<6x1xi32>) -> tensor<6x16xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<5x8xf32>, tensor<8x16xf32>) -> tensor<5x16xf32>
  %1 = "stablehlo.gather"(%0, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 16>}> : (tensor<5x16xf32>, tensor<6x1xi32>) -> tensor<6x16xf32>
  return %1 : tensor<6x16xf32>
}
