// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s --check-prefix=TPU

// Queries, keys and values are one product for XLA for GPU (`DotMerger`): it lies there until the last of them is read.
// Products read slices in copies, in the order of their own dimensions: that of the keys is another for the second product.

// CHECK: remark: copy of result 0 lives from [[AGAIN:[0-9]+]] to [[AGAIN]]
// CHECK: remark: copy of result 0 lives from [[SCORES:[0-9]+]] to [[SCORES]]
// CHECK: remark: result 0 lives from {{[0-9]+}} to [[AGAIN]], 300 % of its bytes
// TPU-NOT: 300 % of its bytes
func.func @main(%x: tensor<256x64xf32>, %wq: tensor<64x32xf32>, %wk: tensor<64x32xf32>, %wv: tensor<64x32xf32>)
    -> (tensor<256x32xf32>, tensor<256x32xf32>) {
  %half = stablehlo.constant dense<5.0e-01> : tensor<256x32xf32>
  %h = stablehlo.exponential %x : tensor<256x64xf32>
  %q = stablehlo.dot_general %h, %wq, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x32xf32>) -> tensor<256x32xf32>
  %k = stablehlo.dot_general %h, %wk, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x32xf32>) -> tensor<256x32xf32>
  %v = stablehlo.dot_general %h, %wv, contracting_dims = [1] x [0] : (tensor<256x64xf32>, tensor<64x32xf32>) -> tensor<256x32xf32>
  %scaled = stablehlo.multiply %q, %half : tensor<256x32xf32>
  %scores = stablehlo.dot_general %scaled, %k, contracting_dims = [1] x [1] : (tensor<256x32xf32>, tensor<256x32xf32>) -> tensor<256x256xf32>
  %mixed = stablehlo.multiply %v, %half : tensor<256x32xf32>
  %again = stablehlo.dot_general %scores, %k, contracting_dims = [1] x [0] : (tensor<256x256xf32>, tensor<256x32xf32>) -> tensor<256x32xf32>
  return %mixed, %again : tensor<256x32xf32>, tensor<256x32xf32>
}
