// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s --check-prefix=GPU

// XLA for TPU compares places with a counter where one number per row is scattered: the gradient of a cross entropy is computed in the operands of both products, and where labels of other devices fall into a last column as well. XLA for GPU scatters into the stored probabilities.

// CHECK: %logits = stablehlo.dot_general
// CHECK-NOT: %scaled =
// CHECK-NOT: %gradient =
// GPU: %logits = stablehlo.dot_general
// GPU: remark: result 0 lives from 5
// GPU-NEXT: %scaled = stablehlo.multiply
// GPU: %gradient = stablehlo.add

func.func @main(%x: tensor<128x128xf32>, %w: tensor<128x128xf32>, %scale: tensor<128xf32>, %labels: tensor<128x1xi32>, %weights: tensor<128xf32>)
    -> (tensor<128x128xf32>, tensor<128x128xf32>) {
  %zeros = stablehlo.constant dense<0.0> : tensor<128x129xf32>
  %logits = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %powers = stablehlo.exponential %logits : tensor<128x128xf32>
  %rows = stablehlo.broadcast_in_dim %scale, dims = [0] : (tensor<128xf32>) -> tensor<128x128xf32>
  %scaled = stablehlo.multiply %powers, %rows : tensor<128x128xf32>
  %places = "stablehlo.scatter"(%zeros, %labels, %weights) <{indices_are_sorted = false, unique_indices = false,
    scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %sum = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %sum : tensor<f32>
  }) : (tensor<128x129xf32>, tensor<128x1xi32>, tensor<128xf32>) -> tensor<128x129xf32>
  %hot = stablehlo.slice %places [0:128, 0:128] : (tensor<128x129xf32>) -> tensor<128x128xf32>
  %gradient = stablehlo.add %scaled, %hot : tensor<128x128xf32>
  %dx = stablehlo.dot_general %gradient, %w, contracting_dims = [1] x [1] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %dw = stablehlo.dot_general %x, %gradient, contracting_dims = [0] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  return %dx, %dw : tensor<128x128xf32>, tensor<128x128xf32>
}
