// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=cuda -o /dev/null 2>&1 | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s --check-prefix=TPU

// What is computed of a sum that was scattered along columns lies as that does, for the product that reads it, and so does what is computed
// with the same constants (%v). To be returned both are computed again in rows, at the end, from what they are made of.

func.func @main(%x: tensor<256x512xf32>, %u: tensor<512x2048xf32>, %k: tensor<256x512xf32>, %w: tensor<512x512xf32>)
    -> (tensor<256x512xf32>, tensor<256x512xf32>, tensor<256x512xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<256x512xf32>
  // CHECK: remark: copy of result 0 lives from 7 to 7{{$}}
  // CHECK-NEXT: %v =
  // CHECK: remark: copy of result 0 lives from 7 to 7{{$}}
  // CHECK-NEXT: %t =
  // CHECK: remark: result 0 lives from 1 to 7{{$}}
  // CHECK-NEXT: %h =
  // CHECK: remark: result 0 lives from 2 to 3{{$}}
  // CHECK-NEXT: %v =
  // CHECK: remark: result 0 lives from 4 to 7{{$}}
  // CHECK-NEXT: %s =
  // CHECK: remark: result 0 lives from 5 to 6{{$}}
  // CHECK-NEXT: %t =
  // TPU-NOT: copy of
  %h = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<256x512xf32>, tensor<512x512xf32>) -> tensor<256x512xf32>
  %v = stablehlo.maximum %h, %zero : tensor<256x512xf32>
  %y = stablehlo.dot_general %v, %u, contracting_dims = [1] x [0] : (tensor<256x512xf32>, tensor<512x2048xf32>) -> tensor<256x2048xf32>
  %s = "stablehlo.reduce_scatter"(%y) <{scatter_dimension = 1 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %a = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %a : tensor<f32>
  }) : (tensor<256x2048xf32>) -> tensor<256x512xf32>
  %t = stablehlo.maximum %s, %zero : tensor<256x512xf32>
  %z = stablehlo.dot_general %t, %w, contracting_dims = [1] x [0] : (tensor<256x512xf32>, tensor<512x512xf32>) -> tensor<256x512xf32>
  return %v, %t, %z : tensor<256x512xf32>, tensor<256x512xf32>, tensor<256x512xf32>
}
