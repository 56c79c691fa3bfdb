// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck --check-prefix=TPU %s

// The sum at the end of a residual block, of which the forward phase reads the positive part, and the backward phase where it is
// positive: XLA for GPU adds twice. A sum that something else reads is stored.

// CHECK-NOT: %sum =
// CHECK: %positive = stablehlo.maximum
// CHECK-NOT: %sum =
// CHECK: %shown = stablehlo.subtract
// TPU: %sum =
// TPU: %shown =

func.func @main(%x: tensor<16x16xf32>, %y: tensor<16x16xf32>, %w: tensor<16x16xf32>, %g: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<16x16xf32>
  %sum = stablehlo.add %x, %y : tensor<16x16xf32>
  %positive = stablehlo.maximum %sum, %zero : tensor<16x16xf32>
  %c = stablehlo.dot_general %positive, %w, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %mask = stablehlo.compare GT, %sum, %zero : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xi1>
  %gradient = stablehlo.select %mask, %g, %zero : tensor<16x16xi1>, tensor<16x16xf32>
  %d = stablehlo.dot_general %gradient, %c, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %shown = stablehlo.subtract %x, %y : tensor<16x16xf32>
  %part = stablehlo.maximum %shown, %zero : tensor<16x16xf32>
  %e = stablehlo.dot_general %part, %w, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  %f = stablehlo.dot_general %shown, %e, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return %c, %d, %f : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>
}
