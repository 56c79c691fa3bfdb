// RUN: stablehlo-alpa-opt %s -alpa-write-received-results -split-input-file | FileCheck %s

// Every number keeps its format.

// CHECK-LABEL: @gathered
// CHECK: %[[A:.+]] = "stablehlo.all_gather"(%arg0)
// CHECK: %[[B:.+]] = "stablehlo.all_gather"(%arg1)
// CHECK-DAG: %[[WIDE:.+]] = stablehlo.reduce_precision %[[A]], format = e8m23 : tensor<16x128xf32>
// CHECK-DAG: %[[NARROW:.+]] = stablehlo.reduce_precision %[[B]], format = e8m7 : tensor<16x128xbf16>
// CHECK: return %[[WIDE]], %[[NARROW]]
func.func @gathered(%a: tensor<8x128xf32>, %b: tensor<8x128xbf16>) -> (tensor<16x128xf32>, tensor<16x128xbf16>) {
  %0 = "stablehlo.all_gather"(%a) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x128xf32>) -> tensor<16x128xf32>
  %1 = "stablehlo.all_gather"(%b) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x128xbf16>) -> tensor<16x128xbf16>
  return %0, %1 : tensor<16x128xf32>, tensor<16x128xbf16>
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

// -----

// Blocks that are no tiles of the result are copied to where they belong: 32 of 64 lanes, or 2 of 4 rows. All others are received there: 8 rows, 128 lanes, blocks
// one behind another. In a result of 128 x 64 the 64 are the rows, so that they fill less.

// CHECK-LABEL: @blocks
// CHECK: %[[LANES:.+]] = "stablehlo.all_gather"(%arg0)
// CHECK: %[[ROWS:.+]] = "stablehlo.all_gather"(%arg1)
// CHECK: %[[TILES:.+]] = "stablehlo.all_gather"(%arg2)
// CHECK: %[[WHOLE:.+]] = "stablehlo.all_gather"(%arg3)
// CHECK: %[[TURNED:.+]] = "stablehlo.all_gather"(%arg4)
// CHECK: %[[OUTER:.+]] = "stablehlo.all_gather"(%arg5)
// CHECK-DAG: %[[A:.+]] = stablehlo.reduce_precision %[[TILES]]
// CHECK-DAG: %[[B:.+]] = stablehlo.reduce_precision %[[WHOLE]]
// CHECK-DAG: %[[C:.+]] = stablehlo.reduce_precision %[[TURNED]]
// CHECK-DAG: %[[D:.+]] = stablehlo.reduce_precision %[[OUTER]]
// CHECK: return %[[LANES]], %[[ROWS]], %[[A]], %[[B]], %[[C]], %[[D]]
func.func @blocks(%lanes: tensor<64x32xf32>, %rows: tensor<4x2x128xf32>, %tiles: tensor<8x128xf32>, %whole: tensor<64x128xf32>, %turned: tensor<128x8xf32>, %outer: tensor<2x4x64xf32>)
    -> (tensor<64x64xf32>, tensor<4x4x128xf32>, tensor<16x128xf32>, tensor<64x256xf32>, tensor<128x16xf32>, tensor<4x4x64xf32>) {
  %0 = "stablehlo.all_gather"(%lanes) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<64x32xf32>) -> tensor<64x64xf32>
  %1 = "stablehlo.all_gather"(%rows) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4x2x128xf32>) -> tensor<4x4x128xf32>
  %2 = "stablehlo.all_gather"(%tiles) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<8x128xf32>) -> tensor<16x128xf32>
  %3 = "stablehlo.all_gather"(%whole) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<64x128xf32>) -> tensor<64x256xf32>
  %4 = "stablehlo.all_gather"(%turned) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<128x8xf32>) -> tensor<128x16xf32>
  %5 = "stablehlo.all_gather"(%outer) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x4x64xf32>) -> tensor<4x4x64xf32>
  return %0, %1, %2, %3, %4, %5 : tensor<64x64xf32>, tensor<4x4x128xf32>, tensor<16x128xf32>, tensor<64x256xf32>, tensor<128x16xf32>, tensor<4x4x64xf32>
}
