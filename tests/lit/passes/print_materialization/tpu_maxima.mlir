// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s

// XLA for TPU takes maxima of what is widened before that: the scores lie in memory in their 16 bits, where what has functions of 32 bits alone taken of it is counted in 32.

// CHECK: remark: result 0 lives from {{[0-9]+}} to {{[0-9]+$}}
// CHECK-NEXT: %scores =
// CHECK: remark: result 0 lives from {{[0-9]+}} to {{[0-9]+}}, 200 % of its bytes
// CHECK-NEXT: %others =

func.func @main(%q: tensor<256x128xbf16>, %k: tensor<256x128xbf16>) -> (tensor<256x256xf32>, tensor<256x256xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %least = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %scores = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<256x128xbf16>, tensor<256x128xbf16>) -> tensor<256x256xbf16>
  %wide = stablehlo.convert %scores : (tensor<256x256xbf16>) -> tensor<256x256xf32>
  %most = stablehlo.reduce(%wide init: %least) applies stablehlo.maximum across dimensions = [1] : (tensor<256x256xf32>, tensor<f32>) -> tensor<256xf32>
  %all_most = stablehlo.broadcast_in_dim %most, dims = [0] : (tensor<256xf32>) -> tensor<256x256xf32>
  %shifted = stablehlo.subtract %wide, %all_most : tensor<256x256xf32>
  %others = stablehlo.dot_general %k, %q, contracting_dims = [1] x [1] : (tensor<256x128xbf16>, tensor<256x128xbf16>) -> tensor<256x256xbf16>
  %other_wide = stablehlo.convert %others : (tensor<256x256xbf16>) -> tensor<256x256xf32>
  %sums = stablehlo.reduce(%other_wide init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<256x256xf32>, tensor<f32>) -> tensor<256xf32>
  %all_sums = stablehlo.broadcast_in_dim %sums, dims = [0] : (tensor<256xf32>) -> tensor<256x256xf32>
  %shares = stablehlo.divide %other_wide, %all_sums : tensor<256x256xf32>
  return %shifted, %shares : tensor<256x256xf32>, tensor<256x256xf32>
}
