// A form that is made of what all forms share, operators that were imported or cut into micro-batches,
// is the one that is made of the traced module at once.
// RUN: stablehlo-alpa-opt %s -alpa-import-pipeline -o %t.imported
// RUN: stablehlo-alpa-opt %t.imported -alpa-merge-pipeline="attention-keys=8" -o %t.merged
// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline="attention-keys=8" | diff %t.merged -
// RUN: FileCheck %s --check-prefix=MERGED < %t.merged
// RUN: stablehlo-alpa-opt %t.imported -alpa-cut-pipeline="micro-batches=2" -o %t.cut
// RUN: stablehlo-alpa-opt %t.cut -alpa-mark-pipeline="micro-batches=2 pad-to=3" -o %t.marked
// RUN: stablehlo-alpa-opt %s -alpa-layers-pipeline="micro-batches=2 pad-to=3" | diff %t.marked -
// RUN: FileCheck %s --check-prefix=MARKED < %t.marked

// MERGED: "alpa.attention"
// MARKED: stablehlo.pad

func.func @main(%q: tensor<4x8x4xf32>, %k: tensor<4x8x4xf32>, %v: tensor<4x8x4xf32>) -> tensor<4x8x4xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %x = stablehlo.dot_general %q, %k, batching_dims = [0] x [0], contracting_dims = [2] x [2] : (tensor<4x8x4xf32>, tensor<4x8x4xf32>) -> tensor<4x8x8xf32>
  %m = stablehlo.reduce(%x init: %least) applies stablehlo.maximum across dimensions = [2] : (tensor<4x8x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %mb = stablehlo.broadcast_in_dim %m, dims = [0, 1] : (tensor<4x8xf32>) -> tensor<4x8x8xf32>
  %d = stablehlo.subtract %x, %mb : tensor<4x8x8xf32>
  %e = stablehlo.exponential %d : tensor<4x8x8xf32>
  %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [2] : (tensor<4x8x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  %lb = stablehlo.broadcast_in_dim %l, dims = [0, 1] : (tensor<4x8xf32>) -> tensor<4x8x8xf32>
  %p = stablehlo.divide %e, %lb : tensor<4x8x8xf32>
  %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0], contracting_dims = [2] x [1] : (tensor<4x8x8xf32>, tensor<4x8x4xf32>) -> tensor<4x8x4xf32>
  return %o : tensor<4x8x4xf32>
}
