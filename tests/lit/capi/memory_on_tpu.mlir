// The module is not planned, so what is asked of a plan fails.
// RUN: not alpa-capi-test describe %s | FileCheck %s

// XLA for TPU stores in 16 bits what products alone read, which round it: %both, though the fusion that makes it sums it up
// besides. What a product of a higher precision reads, such as %exact, it stores as it is. XLA for GPU
// makes %product in eight parts. Beside it lies the memory of all results, for TPU as well.

// CHECK-LABEL: memory:
// CHECK: peak_bytes: 668160
// CHECK-LABEL: memory on TPU:
// CHECK: peak_bytes: 246272
// CHECK: bytes: 65536 65536 65536 32768
// CHECK: name: 'argument 1' 'argument 2' 'stablehlo.multiply' 'stablehlo.add'

func.func @main(%x: tensor<128x8xf32>, %a: tensor<128x128xf32>, %b: tensor<128x128xf32>) -> (tensor<128x8xf32>, tensor<128x8xf32>, tensor<128x8xf32>, tensor<128xf32>) {
  %product = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %both = stablehlo.add %a, %product : tensor<128x128xf32>
  %exact = stablehlo.multiply %a, %product : tensor<128x128xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %sum = stablehlo.reduce(%both init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<128x128xf32>, tensor<f32>) -> tensor<128xf32>
  %c = stablehlo.dot_general %both, %x, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x8xf32>) -> tensor<128x8xf32>
  %d = stablehlo.dot_general %both, %x, contracting_dims = [0] x [0] : (tensor<128x128xf32>, tensor<128x8xf32>) -> tensor<128x8xf32>
  %e = stablehlo.dot_general %exact, %x, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<128x128xf32>, tensor<128x8xf32>) -> tensor<128x8xf32>
  return %c, %d, %e, %sum : tensor<128x8xf32>, tensor<128x8xf32>, tensor<128x8xf32>, tensor<128xf32>
}
