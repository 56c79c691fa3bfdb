// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse -split-input-file | FileCheck %s

// A whole value becomes partial: one device keeps it, the others have zeros, which are negative: 0.0 would make 0.0 of -0.0 where they are added.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<4xf32>) -> tensor<4xf32>
// CHECK: [[CST:%[a-z0-9_]+]] = stablehlo.constant dense<-0.000000e+00> : tensor<f32>
// CHECK: [[C:%[a-z0-9_]+]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK: [[C_0:%[a-z0-9_]+]] = stablehlo.constant dense<1> : tensor<ui32>
// CHECK: [[C_1:%[a-z0-9_]+]] = stablehlo.constant dense<2> : tensor<ui32>
// CHECK: [[V0:%[a-z0-9_]+]] = stablehlo.partition_id : tensor<ui32>
// CHECK: [[V1:%[a-z0-9_]+]] = stablehlo.remainder [[V0]], [[C_1]] : tensor<ui32>
// CHECK: [[V2:%[a-z0-9_]+]] = stablehlo.multiply [[V1]], [[C_0]] : tensor<ui32>
// CHECK: [[V3:%[a-z0-9_]+]] = stablehlo.convert [[V2]] : (tensor<ui32>) -> tensor<i32>
// CHECK: [[V4:%[a-z0-9_]+]] = stablehlo.compare EQ, [[V3]], [[C]] : (tensor<i32>, tensor<i32>) -> tensor<i1>
// CHECK: [[V5:%[a-z0-9_]+]] = stablehlo.broadcast_in_dim [[CST]], dims = [] : (tensor<f32>) -> tensor<4xf32>
// CHECK: [[V6:%[a-z0-9_]+]] = stablehlo.select [[V4]], %[[ARG0]], [[V5]] : tensor<i1>, tensor<4xf32>
// CHECK: return [[V6]] : tensor<4xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4xf32> {alpa.sharding = #alpa.sharding<R>}) -> (tensor<4xf32> {alpa.local = 0 : i64, alpa.sharding = #alpa.sharding<RP0>}) {
    %0 = alpa.reshard %x from <R> to <RP0> : tensor<4xf32>
    return {alpa.operands = [#alpa.sharding<RP0>], alpa.results = []} %0 : tensor<4xf32>
  }
}

// -----

// Zeros add up to zeros: all devices have them, the first sum of a loop for one.

// CHECK-LABEL: func.func @zeros
// CHECK-NOT: partition_id
// CHECK: %[[ZERO:.+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK: %[[ZEROS:.+]] = stablehlo.broadcast_in_dim %[[ZERO]], dims = [] : (tensor<f32>) -> tensor<4xf32>
// CHECK-NOT: stablehlo.select
// CHECK: return %[[ZEROS]] : tensor<4xf32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @zeros() -> (tensor<4xf32> {alpa.local = 0 : i64, alpa.sharding = #alpa.sharding<RP0>}) {
    %zero = stablehlo.constant {alpa.operands = [], alpa.results = [#alpa.sharding<>], alpa.strategy = #alpa.strategy<>} dense<0.0> : tensor<f32>
    %zeros = stablehlo.broadcast_in_dim %zero, dims = [] {alpa.operands = [#alpa.sharding<>], alpa.results = [#alpa.sharding<R>], alpa.strategy = #alpa.strategy<>} : (tensor<f32>) -> tensor<4xf32>
    %0 = alpa.reshard %zeros from <R> to <RP0> : tensor<4xf32>
    return {alpa.operands = [#alpa.sharding<RP0>], alpa.results = []} %0 : tensor<4xf32>
  }
}
