// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -split-input-file -o /dev/null 2>&1 | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=cuda -split-input-file -o /dev/null 2>&1 | FileCheck %s --check-prefix=GPU

// XLA for TPU receives what is gathered in memory of its own. What is returned of it as it is are copies, behind all else.

// CHECK: remark: copy of result 0 lives from 2 to 2
// CHECK-NEXT: %a =
// CHECK: remark: copy of result 0 lives from 2 to 2
// CHECK-NEXT: %b =
// CHECK: remark: result 0 lives from 0 to 2
// CHECK-NEXT: %a =
// CHECK: remark: result 0 lives from 1 to 2
// CHECK-NEXT: %b =

// GPU-NOT: remark: copy of

func.func @main(%x: tensor<8x128xf32>, %y: tensor<8x128xf32>) -> (tensor<16x128xf32>, tensor<16x128xf32>) {
  %a = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x128xf32>) -> tensor<16x128xf32>
  %b = "stablehlo.all_gather"(%y) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x128xf32>) -> tensor<16x128xf32>
  return %a, %b : tensor<16x128xf32>, tensor<16x128xf32>
}

// -----

// What is computed of it to be returned is written beside it; on GPUs over it.

// CHECK: remark: result 0 lives from 0 to 1
// CHECK-NEXT: %a =
// CHECK: remark: result 0 lives from 1 to 2
// CHECK-NEXT: %b =

// GPU: remark: result 0 lives from 0 to 1
// GPU-NEXT: %a =
// GPU: remark: result 0 lives from 2 to 2
// GPU-NEXT: %b =

func.func @main(%x: tensor<8x128xf32>) -> tensor<16x128xf32> {
  %a = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x128xf32>) -> tensor<16x128xf32>
  %b = stablehlo.reduce_precision %a, format = e8m23 : tensor<16x128xf32>
  return %b : tensor<16x128xf32>
}

// -----

// Columns that are less than a tile are added up among zeros, where the result is returned.

// CHECK-NOT: remark: copy of result
// CHECK: remark: result 0 lives from 0 to 1
// CHECK-NEXT: %a =
// CHECK-NOT: remark: copy of result

func.func @main(%x: tensor<8x64xf32>) -> tensor<8x128xf32> {
  %a = "stablehlo.all_gather"(%x) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x64xf32>) -> tensor<8x128xf32>
  return %a : tensor<8x128xf32>
}
