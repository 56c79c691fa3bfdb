// RUN: not stablehlo-alpa-opt %s "--alpa-outline-attention=keys=0 block-bytes=8" 2>&1 | FileCheck %s

// CHECK: alpa-outline-attention: keys and block-bytes must be >= 1, got 0 and 8
func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}
