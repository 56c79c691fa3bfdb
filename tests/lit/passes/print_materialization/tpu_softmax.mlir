// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s

// Scores of 16 bits that are widened lie in memory in 32 bits; what two products read of their softmax is stored in its 16 bits. In 32 bits the softmax is computed in the operands of both products.

// CHECK: remark: result 0 lives from {{[0-9]+}} to {{[0-9]+}}, 200 % of its bytes
// CHECK-NEXT: %scores = stablehlo.dot_general
// CHECK: remark: result 0 lives from
// CHECK-NEXT: %sums =
// CHECK: remark: result 0 lives from
// CHECK-NEXT: %narrow = stablehlo.convert
// CHECK: %single = stablehlo.dot_general
// CHECK-NOT: %exponentials =
// CHECK-NOT: %parts32 =

func.func @main(%q: tensor<128x128xbf16>, %k: tensor<128x128xbf16>, %v: tensor<128x128xbf16>, %q32: tensor<128x128xf32>, %k32: tensor<128x128xf32>)
    -> (tensor<128x128xbf16>, tensor<128x128xbf16>, tensor<128x128xf32>, tensor<128x128xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %scores = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] : (tensor<128x128xbf16>, tensor<128x128xbf16>) -> tensor<128x128xbf16>
  %wide = stablehlo.convert %scores : (tensor<128x128xbf16>) -> tensor<128x128xf32>
  %powers = stablehlo.exponential %wide : tensor<128x128xf32>
  %sums = stablehlo.reduce(%powers init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<128x128xf32>, tensor<f32>) -> tensor<128xf32>
  %rows = stablehlo.broadcast_in_dim %sums, dims = [0] : (tensor<128xf32>) -> tensor<128x128xf32>
  %parts = stablehlo.divide %powers, %rows : tensor<128x128xf32>
  %narrow = stablehlo.convert %parts : (tensor<128x128xf32>) -> tensor<128x128xbf16>
  %a = stablehlo.dot_general %narrow, %v, contracting_dims = [1] x [0] : (tensor<128x128xbf16>, tensor<128x128xbf16>) -> tensor<128x128xbf16>
  %b = stablehlo.dot_general %narrow, %v, contracting_dims = [0] x [0] : (tensor<128x128xbf16>, tensor<128x128xbf16>) -> tensor<128x128xbf16>
  %single = stablehlo.dot_general %q32, %k32, contracting_dims = [1] x [1] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %exponentials = stablehlo.exponential %single : tensor<128x128xf32>
  %sums32 = stablehlo.reduce(%exponentials init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<128x128xf32>, tensor<f32>) -> tensor<128xf32>
  %rows32 = stablehlo.broadcast_in_dim %sums32, dims = [0] : (tensor<128xf32>) -> tensor<128x128xf32>
  %parts32 = stablehlo.divide %exponentials, %rows32 : tensor<128x128xf32>
  %c = stablehlo.dot_general %parts32, %q32, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %d = stablehlo.dot_general %parts32, %k32, contracting_dims = [0] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  return %a, %b, %c, %d : tensor<128x128xbf16>, tensor<128x128xbf16>, tensor<128x128xf32>, tensor<128x128xf32>
}
