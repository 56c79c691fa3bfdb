// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=cuda -o /dev/null 2>&1 | FileCheck %s --check-prefix=GPU

// XLA for TPU makes a sum that is scattered over all devices whole on each of them, over its summand, and keeps it until the last fusion
// has read its part. A product for it that is larger than what it is made of comes behind those that others wait for, and behind those of
// sums within groups, which are scattered.

func.func @main(%x: tensor<64x1024xf32>, %u: tensor<1024x1024xf32>, %z: tensor<256x1024xf32>)
    -> (tensor<256x1024xf32>, tensor<64x1024xf32>, tensor<64x1024xf32>, tensor<512x1024xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // CHECK: remark: result 0 lives from 6 to 7{{$}}
  // CHECK-NEXT: %g =
  // CHECK: remark: result 0 lives from 8 to 8, 400 % of its bytes
  // CHECK-NEXT: %s =
  // CHECK: remark: result 0 lives from 1 to 2{{$}}
  // CHECK-NEXT: %h =
  // CHECK: remark: result 0 lives from 3 to 9{{$}}
  // CHECK-NEXT: %a =
  // CHECK: remark: result 0 lives from 4 to 8{{$}}
  // CHECK-NEXT: %k =
  // CHECK: remark: result 0 lives from 5 to 9{{$}}
  // CHECK-NEXT: %p =

  // GPU: remark: result 0 lives from 7 to 8{{$}}
  // GPU-NEXT: %s =
  // GPU: remark: result 0 lives from 2 to 9{{$}}
  // GPU-NEXT: %a =
  %g = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<64x1024xf32>, tensor<64x1024xf32>) -> tensor<1024x1024xf32>
  %s = "stablehlo.reduce_scatter"(%g) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %t = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }) : (tensor<1024x1024xf32>) -> tensor<256x1024xf32>
  %h = stablehlo.dot_general %x, %u, contracting_dims = [1] x [0] : (tensor<64x1024xf32>, tensor<1024x1024xf32>) -> tensor<64x1024xf32>
  %a = "stablehlo.all_reduce"(%h) <{replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %t = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }) : (tensor<64x1024xf32>) -> tensor<64x1024xf32>
  %y = stablehlo.dot_general %a, %u, contracting_dims = [1] x [0] : (tensor<64x1024xf32>, tensor<1024x1024xf32>) -> tensor<64x1024xf32>
  %m = stablehlo.add %s, %z : tensor<256x1024xf32>
  %k = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<64x1024xf32>, tensor<64x1024xf32>) -> tensor<1024x1024xf32>
  %p = "stablehlo.reduce_scatter"(%k) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %t = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %t : tensor<f32>
  }) : (tensor<1024x1024xf32>) -> tensor<512x1024xf32>
  return %m, %a, %y, %p : tensor<256x1024xf32>, tensor<64x1024xf32>, tensor<64x1024xf32>, tensor<512x1024xf32>
}
