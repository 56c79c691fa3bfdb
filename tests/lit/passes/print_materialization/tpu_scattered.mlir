// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=cuda -o /dev/null 2>&1 | FileCheck %s --check-prefix=GPU

// Large sums of matrices XLA for TPU scatters in a kernel that leaves some rows with a neighbour: what it wrote lies there until the next
// such kernel has written. Neither a sum over the last dimension nor a small one is made so.

// CHECK: remark: result 0 lives from 1 to 5
// CHECK-NEXT: %a =
// CHECK: remark: result 0 lives from 3 to 4
// CHECK-NEXT: %c =

// GPU: remark: result 0 lives from 1 to 2
// GPU-NEXT: %a =

func.func @main(%x: tensor<4096x4096xf32>, %y: tensor<4096x4096xf32>, %z: tensor<512x1024xf32>) -> (tensor<f32>, tensor<f32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %a = "stablehlo.reduce_scatter"(%x) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4096x4096xf32>) -> tensor<2048x4096xf32>
  %b = stablehlo.reduce(%a init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2048x4096xf32>, tensor<f32>) -> tensor<f32>
  %c = "stablehlo.reduce_scatter"(%z) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<512x1024xf32>) -> tensor<256x1024xf32>
  %d = stablehlo.reduce(%c init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<256x1024xf32>, tensor<f32>) -> tensor<f32>
  %e = "stablehlo.reduce_scatter"(%y) <{scatter_dimension = 0 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %s = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4096x4096xf32>) -> tensor<2048x4096xf32>
  %f = stablehlo.reduce(%e init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2048x4096xf32>, tensor<f32>) -> tensor<f32>
  return %b, %d, %f : tensor<f32>, tensor<f32>, tensor<f32>
}
