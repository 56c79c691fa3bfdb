// RUN: not stablehlo-alpa-opt %s --alpa-outline-attention=keys=0 2>&1 | FileCheck %s

// CHECK: alpa-outline-attention: keys and block-bytes must be >= 1, got 0 and 134217728
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
