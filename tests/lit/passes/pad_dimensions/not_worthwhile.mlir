// RUN: stablehlo-alpa-opt %s --alpa-pad-dimensions="multiple=8 most-added=0.125" --verify-diagnostics | FileCheck %s

// Twelve rows padded to sixteen are a third more than asked for may be added; features divide.
// CHECK-LABEL: func.func @main
// CHECK-NOT: stablehlo.pad
func.func @main(%x: tensor<12x16xf32>, %w: tensor<16x8xf32>) -> tensor<12x8xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<12x16xf32>, tensor<16x8xf32>) -> tensor<12x8xf32>
  return %0 : tensor<12x8xf32>
}
