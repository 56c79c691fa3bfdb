// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s --check-prefix=TPU

// XLA for GPU has cuDNN take kernels by output features, places, input features: f32[32,3,3,16] of %kernel, from the convolution to
// the gradient of its input, which reverses the kernel and takes the same copy. %ordered lies so.

// CHECK: remark: copy of argument 1 lives from [[FORWARD:[0-9]+]] to [[BACKWARD:[0-9]+]]
// CHECK-NOT: remark: copy
// CHECK: reads {{.*}} at point [[FORWARD]]
// CHECK-NEXT: %0 = stablehlo.convolution
// CHECK: reads {{.*}} at point [[BACKWARD]]
// CHECK-NEXT: %3 = stablehlo.convolution
// TPU-NOT: remark: copy

func.func @main(%x: tensor<4x8x8x16xf32>, %kernel: tensor<3x3x16x32xf32>, %ordered: tensor<32x3x3x32xf32>) -> tensor<4x8x8x16xf32> {
  %0 = stablehlo.convolution(%x, %kernel) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x8x8x16xf32>, tensor<3x3x16x32xf32>) -> tensor<4x8x8x32xf32>
  %1 = stablehlo.convolution(%0, %ordered) dim_numbers = [b, 0, 1, f]x[o, 0, 1, i]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x8x8x32xf32>, tensor<32x3x3x32xf32>) -> tensor<4x8x8x32xf32>
  %2 = stablehlo.reverse %kernel, dims = [0, 1] : tensor<3x3x16x32xf32>
  %3 = stablehlo.convolution(%1, %2) dim_numbers = [b, 0, 1, f]x[0, 1, o, i]->[b, 0, 1, f], window = {pad = [[1, 1], [1, 1]]}
    {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<4x8x8x32xf32>, tensor<3x3x16x32xf32>) -> tensor<4x8x8x16xf32>
  return %3 : tensor<4x8x8x16xf32>
}
