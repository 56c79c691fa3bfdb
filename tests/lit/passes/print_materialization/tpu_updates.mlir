// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s

// All that is computed of a gradient is computed together, in the fusion that XLA for TPU makes of it, even where it waits for all
// gradients and reads parts of arguments: the first gradient ends before what is computed of the second.

// CHECK: remark: result 0 lives from 6 to 15{{$}}
// CHECK-NEXT: %g =
// CHECK: remark: result 0 lives from 8 to 17{{$}}
// CHECK-NEXT: %h =
// CHECK: remark: result 0 lives from 16 to 18{{$}}
// CHECK-NEXT: %mu_h =
// CHECK: remark: result 0 lives from 16 to 18{{$}}
// CHECK-NEXT: %nu_g =

func.func @main(%x: tensor<64x256xf32>, %mu: tensor<512x256xf32>, %nu: tensor<512x256xf32>, %i: tensor<i32>)
    -> (tensor<256x256xf32>, tensor<256x256xf32>, tensor<256x256xf32>, tensor<256x256xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %o = stablehlo.constant dense<0> : tensor<i32>
  %g = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<256x256xf32>
  %h = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<64x256xf32>, tensor<64x256xf32>) -> tensor<256x256xf32>
  %g_sum = stablehlo.reduce(%g init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<256x256xf32>, tensor<f32>) -> tensor<f32>
  %h_sum = stablehlo.reduce(%h init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<256x256xf32>, tensor<f32>) -> tensor<f32>
  %norm = stablehlo.add %g_sum, %h_sum : tensor<f32>
  %n = stablehlo.broadcast_in_dim %norm, dims = [] : (tensor<f32>) -> tensor<256x256xf32>
  %g_n = stablehlo.multiply %g, %n : tensor<256x256xf32>
  %h_n = stablehlo.multiply %h, %n : tensor<256x256xf32>
  %a = stablehlo.dynamic_slice %mu, %i, %o, sizes = [256, 256] : (tensor<512x256xf32>, tensor<i32>, tensor<i32>) -> tensor<256x256xf32>
  %mu_g = stablehlo.add %a, %g_n : tensor<256x256xf32>
  %b = stablehlo.dynamic_slice %mu, %i, %o, sizes = [256, 256] : (tensor<512x256xf32>, tensor<i32>, tensor<i32>) -> tensor<256x256xf32>
  %mu_h = stablehlo.subtract %b, %h_n : tensor<256x256xf32>
  %c = stablehlo.dynamic_slice %nu, %i, %o, sizes = [256, 256] : (tensor<512x256xf32>, tensor<i32>, tensor<i32>) -> tensor<256x256xf32>
  %nu_g = stablehlo.add %c, %g_n : tensor<256x256xf32>
  %d = stablehlo.dynamic_slice %nu, %i, %o, sizes = [256, 256] : (tensor<512x256xf32>, tensor<i32>, tensor<i32>) -> tensor<256x256xf32>
  %nu_h = stablehlo.subtract %d, %h_n : tensor<256x256xf32>
  return %mu_g, %mu_h, %nu_g, %nu_h : tensor<256x256xf32>, tensor<256x256xf32>, tensor<256x256xf32>, tensor<256x256xf32>
}
