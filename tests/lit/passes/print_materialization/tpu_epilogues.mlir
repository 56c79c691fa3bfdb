// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s

// What is made of a product and of what was there before is computed and stored where the product is made, in the 16 bits in which products read it. Behind a sum of rows, as the gradient of a softmax, it is computed in the operands of the products that read it.

// CHECK: remark: result 0 lives from {{[0-9]+}} to {{[0-9]+}}, 50 % of its bytes
// CHECK-NEXT: %gated = stablehlo.multiply
// CHECK: %sums = stablehlo.reduce
// CHECK-NOT: %scores =

func.func @main(%x: tensor<128x128xf32>, %w: tensor<128x128xf32>)
    -> (tensor<128x128xf32>, tensor<128x128xf32>, tensor<128x128xf32>, tensor<128x128xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %gate = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %up = stablehlo.dot_general %x, %w, contracting_dims = [0] x [1] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %gated = stablehlo.multiply %gate, %up : tensor<128x128xf32>
  %a = stablehlo.dot_general %gated, %w, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %b = stablehlo.dot_general %gated, %x, contracting_dims = [0] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %powers = stablehlo.multiply %a, %b : tensor<128x128xf32>
  %sums = stablehlo.reduce(%powers init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<128x128xf32>, tensor<f32>) -> tensor<128xf32>
  %rows = stablehlo.broadcast_in_dim %sums, dims = [0] : (tensor<128xf32>) -> tensor<128x128xf32>
  %difference = stablehlo.subtract %b, %rows : tensor<128x128xf32>
  %scores = stablehlo.multiply %difference, %a : tensor<128x128xf32>
  %c = stablehlo.dot_general %scores, %w, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %d = stablehlo.dot_general %scores, %x, contracting_dims = [0] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  return %a, %b, %c, %d : tensor<128x128xf32>, tensor<128x128xf32>, tensor<128x128xf32>, tensor<128x128xf32>
}
