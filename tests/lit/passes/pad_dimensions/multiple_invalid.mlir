// RUN: not stablehlo-alpa-opt %s --alpa-pad-dimensions=multiple=0 2>&1 | FileCheck %s

// CHECK: alpa-pad-dimensions: multiple must be >= 1, got 0
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
