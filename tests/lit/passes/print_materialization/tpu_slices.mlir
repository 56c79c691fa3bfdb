// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s --implicit-check-not="remark: result 0 lives"
// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=cuda -o /dev/null 2>&1 | FileCheck %s --check-prefix=GPU

// XLA for TPU slices and joins operands inside of the products that read them; XLA for GPU stores them, and so do both where elements are reversed.

// CHECK: remark: result 0 lives from
// CHECK-NEXT: %reversed =
// CHECK: remark: result 0 lives from
// CHECK-NEXT: %first =
// CHECK: remark: result 0 lives from
// CHECK-NEXT: %second =
// CHECK: remark: result 0 lives from
// CHECK-NEXT: %third =

// GPU: remark: result 0 lives from
// GPU-NEXT: %slice =
// GPU: remark: result 0 lives from
// GPU-NEXT: %joined =
// GPU: remark: result 0 lives from
// GPU-NEXT: %reversed =

func.func @main(%x: tensor<128x128xf32>, %wide: tensor<128x512xf32>, %place: tensor<i32>) -> (tensor<128x128xf32>, tensor<128x256xf32>, tensor<128x128xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %slice = stablehlo.dynamic_slice %wide, %zero, %place, sizes = [128, 128] : (tensor<128x512xf32>, tensor<i32>, tensor<i32>) -> tensor<128x128xf32>
  %joined = stablehlo.concatenate %x, %x, dim = 1 : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x256xf32>
  %reversed = stablehlo.reverse %x, dims = [0] : tensor<128x128xf32>
  %first = stablehlo.dot_general %x, %slice, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %second = stablehlo.dot_general %x, %joined, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x256xf32>) -> tensor<128x256xf32>
  %third = stablehlo.dot_general %x, %reversed, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  return %first, %second, %third : tensor<128x128xf32>, tensor<128x256xf32>, tensor<128x128xf32>
}
