// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s --implicit-check-not="copy of"

// Where the kernel of a product adds a bias, the sum alone is in memory.

// CHECK-NOT: %scores = stablehlo.dot_general
// CHECK: remark: result 0 lives from {{[0-9]+}} to {{[0-9]+$}}
// CHECK-NEXT: %biased =

func.func @biased(%x: tensor<64x128xf32>, %w: tensor<128x4096xf32>, %bias: tensor<4096xf32>, %ids: tensor<64x1xi32>) -> (tensor<64xf32>, tensor<64xf32>) {
  %none = stablehlo.constant dense<0.0> : tensor<f32>
  %scores = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x128xf32>, tensor<128x4096xf32>) -> tensor<64x4096xf32>
  %biases = stablehlo.broadcast_in_dim %bias, dims = [1] : (tensor<4096xf32>) -> tensor<64x4096xf32>
  %biased = stablehlo.add %scores, %biases : tensor<64x4096xf32>
  %found = "stablehlo.gather"(%biased, %ids) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<64x4096xf32>, tensor<64x1xi32>) -> tensor<64xf32>
  %powers = stablehlo.exponential %biased : tensor<64x4096xf32>
  %sums = stablehlo.reduce(%powers init: %none) applies stablehlo.add across dimensions = [1] : (tensor<64x4096xf32>, tensor<f32>) -> tensor<64xf32>
  return %found, %sums : tensor<64xf32>, tensor<64xf32>
}
