// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// A split value becomes partial without communication: the block goes to its place among zeros.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<2xf32>) -> tensor<4xf32>
// CHECK: [[C:%[a-z0-9_]+]] = stablehlo.constant dense<2> : tensor<ui32>
// CHECK: [[CST:%[a-z0-9_]+]] = stablehlo.constant dense<-0.000000e+00> : tensor<f32>
// CHECK: [[V0:%[a-z0-9_]+]] = stablehlo.broadcast_in_dim [[CST]], dims = [] : (tensor<f32>) -> tensor<4xf32>
// CHECK: [[V1:%[a-z0-9_]+]] = stablehlo.partition_id : tensor<ui32>
// CHECK: [[V2:%[a-z0-9_]+]] = stablehlo.remainder [[V1]], [[C]] : tensor<ui32>
// CHECK: [[V3:%[a-z0-9_]+]] = stablehlo.multiply [[V2]], [[C]] : tensor<ui32>
// CHECK: [[V4:%[a-z0-9_]+]] = stablehlo.convert [[V3]] : (tensor<ui32>) -> tensor<i32>
// CHECK: [[V5:%[a-z0-9_]+]] = stablehlo.dynamic_update_slice [[V0]], %[[ARG0]], [[V4]] : (tensor<4xf32>, tensor<2xf32>, tensor<i32>) -> tensor<4xf32>
// CHECK: return [[V5]] : tensor<4xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4xf32> {alpa.sharding = #alpa.sharding<S0>}) -> (tensor<4xf32> {alpa.local = 0 : i64, alpa.sharding = #alpa.sharding<RP0>}) {
    %0 = alpa.reshard %x from <S0> to <RP0> : tensor<4xf32>
    return {alpa.operands = [#alpa.sharding<RP0>], alpa.results = []} %0 : tensor<4xf32>
  }
}
