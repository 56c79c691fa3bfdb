// RUN: stablehlo-alpa-opt %s -alpa-write-received-results -split-input-file | FileCheck %s

// Every number keeps its format.

// CHECK-LABEL: @gathered
// CHECK: %[[A:.+]] = "stablehlo.all_gather"(%arg0)
// CHECK: %[[B:.+]] = "stablehlo.all_gather"(%arg1)
// CHECK-DAG: %[[WIDE:.+]] = stablehlo.reduce_precision %[[A]], format = e8m23 : tensor<6x4xf32>
// CHECK-DAG: %[[NARROW:.+]] = stablehlo.reduce_precision %[[B]], format = e8m7 : tensor<6x4xbf16>
// CHECK: return %[[WIDE]], %[[NARROW]]
func.func @gathered(%a: tensor<3x4xf32>, %b: tensor<3x4xbf16>) -> (tensor<6x4xf32>, tensor<6x4xbf16>) {
  %0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<3x4xf32>) -> tensor<6x4xf32>
  %1 = "stablehlo.all_gather"(%b) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<3x4xbf16>) -> tensor<6x4xbf16>
  return %0, %1 : tensor<6x4xf32>, tensor<6x4xbf16>
}

// -----

// What is sent in another shape.

// CHECK-LABEL: @reshaped
// CHECK: "stablehlo.collective_permute"
// CHECK: %[[A:.+]] = stablehlo.reshape
// CHECK: %[[R:.+]] = stablehlo.reduce_precision %[[A]], format = e5m10 : tensor<12xf16>
// CHECK: return %[[R]]
func.func @reshaped(%a: tensor<3x4xf16>) -> tensor<12xf16> {
  %0 = "stablehlo.collective_permute"(%a) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<3x4xf16>) -> tensor<3x4xf16>
  %1 = stablehlo.reshape %0 : (tensor<3x4xf16>) -> tensor<12xf16>
  return %1 : tensor<12xf16>
}

// -----

// Sums are received where they are returned, and integers have no format.

// CHECK-LABEL: @others
// CHECK-NOT: reduce_precision
func.func @others(%a: tensor<4xf32>, %b: tensor<2xi32>) -> (tensor<4xf32>, tensor<4xi32>) {
  %0 = "stablehlo.all_reduce"(%a) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%c: tensor<f32>, %d: tensor<f32>):
    %s = stablehlo.add %c, %d : tensor<f32>
    stablehlo.return %s : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  %1 = "stablehlo.all_gather"(%b) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2xi32>) -> tensor<4xi32>
  return %0, %1 : tensor<4xf32>, tensor<4xi32>
}
