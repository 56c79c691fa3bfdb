// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s

// Two dimensions of a tensor are padded to tiles of 8 x 128: 65 rows to 72; the 64 columns of a head to 128, but that of the 65 rows next to them costs less. A kernel of heads is laid out by its first dimension, which costs nothing.

// CHECK: remark: result 0 lives from {{[0-9]+}} to {{[0-9]+}}, 110 % of its bytes
// CHECK-NEXT: %rows =
// CHECK: remark: result 0 lives from {{[0-9]+}} to {{[0-9]+}}, 196 % of its bytes
// CHECK-NEXT: %heads =
// CHECK: remark: result 0 lives from {{[0-9]+}} to {{[0-9]+$}}
// CHECK-NEXT: %kernel =

func.func @main(%x: tensor<32x65x768xf32>, %y: tensor<32x65x12x64xf32>, %z: tensor<512x16x64xf32>)
    -> (tensor<64x65x768xf32>, tensor<64x65x12x64xf32>, tensor<1024x16x64xf32>) {
  %rows = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<32x65x768xf32>) -> tensor<64x65x768xf32>
  %heads = "stablehlo.all_gather"(%y) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<32x65x12x64xf32>) -> tensor<64x65x12x64xf32>
  %kernel = "stablehlo.all_gather"(%z) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<512x16x64xf32>) -> tensor<1024x16x64xf32>
  return %rows, %heads, %kernel : tensor<64x65x768xf32>, tensor<64x65x12x64xf32>, tensor<1024x16x64xf32>
}
