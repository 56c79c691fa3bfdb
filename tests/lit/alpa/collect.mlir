// RUN: stablehlo-alpa-opt %s | stablehlo-alpa-opt | FileCheck %s

// Parts of micro-batches side by side; where one micro-batch has everything, the whole.

// CHECK: alpa.collect %arg0 at %arg1 along 0 : tensor<2x4xf32>, tensor<ui32> to tensor<8x4xf32>
// CHECK: alpa.collect %arg0 at %arg1 along 1 : tensor<2x4xf32>, tensor<ui32> to tensor<2x8xf32>
// CHECK: alpa.collect %arg0 at %arg1 along 1 : tensor<2x4xf32>, tensor<ui32> to tensor<2x4xf32>
func.func @main(%x: tensor<2x4xf32>, %n: tensor<ui32>) -> (tensor<8x4xf32>, tensor<2x8xf32>, tensor<2x4xf32>) {
  %0 = alpa.collect %x at %n along 0 : tensor<2x4xf32>, tensor<ui32> to tensor<8x4xf32>
  %1 = alpa.collect %x at %n along 1 : tensor<2x4xf32>, tensor<ui32> to tensor<2x8xf32>
  %2 = alpa.collect %x at %n along 1 : tensor<2x4xf32>, tensor<ui32> to tensor<2x4xf32>
  return %0, %1, %2 : tensor<8x4xf32>, tensor<2x8xf32>, tensor<2x4xf32>
}
