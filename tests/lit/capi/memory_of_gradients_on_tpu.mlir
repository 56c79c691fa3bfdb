// The module is not planned, so what is asked of a plan fails.
// RUN: not alpa-capi-test describe %s | FileCheck %s

// XLA for GPU has gradients that are summed over devices behind everything else, the first one last, so that cotangents live to
// the end (%d0 and %d2 beside %last, with %g1 made and %g2 in 32 parts, and memory of all results); for TPU each gradient is made where the program has it, and its cotangent goes with it, beside memory of all results.

// CHECK-LABEL: memory:
// CHECK: peak_bytes: 7.60218e+06
// CHECK: bytes: 2.03162e+06 1.04858e+06 1.04858e+06 1.04858e+06 1.04858e+06 1.04858e+06 65536 65536 65536 65536 65536
// CHECK-LABEL: memory on TPU:
// CHECK: peak_bytes: 4.45645e+06
// CHECK: bytes: 1.04858e+06 1.04858e+06 1.04858e+06 1.04858e+06 65536

func.func @main(%x: tensor<2048x128xf32>, %d: tensor<2048x128xf32>, %w: tensor<128x128xf32>) -> (tensor<128x128xf32>, tensor<128x128xf32>, tensor<128x128xf32>, tensor<2048x128xf32>) {
  %d0 = stablehlo.dot_general %d, %w, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<2048x128xf32>, tensor<128x128xf32>) -> tensor<2048x128xf32>
  %g0 = stablehlo.dot_general %x, %d0, contracting_dims = [0] x [0], precision = [HIGHEST, HIGHEST] : (tensor<2048x128xf32>, tensor<2048x128xf32>) -> tensor<128x128xf32>
  %s0 = "stablehlo.all_reduce"(%g0) <{channel_handle = #stablehlo.channel_handle<handle = 1, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<128x128xf32>) -> tensor<128x128xf32>
  %d1 = stablehlo.dot_general %d0, %w, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<2048x128xf32>, tensor<128x128xf32>) -> tensor<2048x128xf32>
  %g1 = stablehlo.dot_general %x, %d1, contracting_dims = [0] x [0], precision = [HIGHEST, HIGHEST] : (tensor<2048x128xf32>, tensor<2048x128xf32>) -> tensor<128x128xf32>
  %s1 = "stablehlo.all_reduce"(%g1) <{channel_handle = #stablehlo.channel_handle<handle = 2, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<128x128xf32>) -> tensor<128x128xf32>
  %d2 = stablehlo.dot_general %d1, %w, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<2048x128xf32>, tensor<128x128xf32>) -> tensor<2048x128xf32>
  %g2 = stablehlo.dot_general %x, %d2, contracting_dims = [0] x [0], precision = [HIGHEST, HIGHEST] : (tensor<2048x128xf32>, tensor<2048x128xf32>) -> tensor<128x128xf32>
  %s2 = "stablehlo.all_reduce"(%g2) <{channel_handle = #stablehlo.channel_handle<handle = 3, type = 1>, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %s = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<128x128xf32>) -> tensor<128x128xf32>
  %last = stablehlo.dot_general %d2, %w, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<2048x128xf32>, tensor<128x128xf32>) -> tensor<2048x128xf32>
  return %s0, %s1, %s2, %last : tensor<128x128xf32>, tensor<128x128xf32>, tensor<128x128xf32>, tensor<2048x128xf32>
}
