// RUN: stablehlo-alpa-opt %s -split-input-file --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s
// RUN: stablehlo-alpa-opt %s -split-input-file --alpa-print-materialization=platform=cuda -o /dev/null 2>&1 | FileCheck %s --check-prefix=GPU --implicit-check-not="copy of"

// XLA for TPU rounds a whole table in memory, for the kernel that looks words up in it; XLA for GPU rounds the words.

// CHECK: remark: copy of result 0 lives from {{[0-9]+}} to {{[0-9]+$}}
// CHECK-NEXT: %rounded =
// GPU: lives from

func.func @words(%table: tensor<4096x128xf32>, %ids: tensor<64x1xi32>) -> tensor<64x128xbf16> {
  %rounded = stablehlo.convert %table : (tensor<4096x128xf32>) -> tensor<4096x128xbf16>
  %words = "stablehlo.gather"(%rounded, %ids) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], collapsed_slice_dims = [0], start_index_map = [0], index_vector_dim = 1>, slice_sizes = array<i64: 1, 128>}> : (tensor<4096x128xbf16>, tensor<64x1xi32>) -> tensor<64x128xbf16>
  return %words : tensor<64x128xbf16>
}

// -----

// A product of 16 bits that is returned as it is lies in 32 bits beside that.

// CHECK: remark: copy of result 0 lives from {{[0-9]+}} to {{[0-9]+$}}
// CHECK-NEXT: %widened =
// CHECK: remark: result 0 lives from {{[0-9]+}} to {{[0-9]+$}}
// CHECK-NEXT: %scores =
// GPU: lives from

func.func @returned(%x: tensor<64x128xbf16>, %w: tensor<128x4096xbf16>, %ids: tensor<64x1xi32>) -> (tensor<64x4096xbf16>, tensor<64xf32>) {
  %scores = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x128xbf16>, tensor<128x4096xbf16>) -> tensor<64x4096xbf16>
  %widened = stablehlo.convert %scores : (tensor<64x4096xbf16>) -> tensor<64x4096xf32>
  %found = "stablehlo.gather"(%widened, %ids) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<64x4096xf32>, tensor<64x1xi32>) -> tensor<64xf32>
  return %scores, %found : tensor<64x4096xbf16>, tensor<64xf32>
}

// -----

// One that is read in 32 bits alone lies there in these.

// CHECK-NOT: copy of
// CHECK: remark: result 0 lives from {{[0-9]+}} to {{[0-9]+}}, 200 % of its bytes
// CHECK-NEXT: %scores =
// CHECK-NOT: copy of
// GPU: lives from

func.func @widened(%x: tensor<64x128xbf16>, %w: tensor<128x4096xbf16>, %ids: tensor<64x1xi32>) -> tensor<64xf32> {
  %scores = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<64x128xbf16>, tensor<128x4096xbf16>) -> tensor<64x4096xbf16>
  %widened = stablehlo.convert %scores : (tensor<64x4096xbf16>) -> tensor<64x4096xf32>
  %found = "stablehlo.gather"(%widened, %ids) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<64x4096xf32>, tensor<64x1xi32>) -> tensor<64xf32>
  return %found : tensor<64xf32>
}
