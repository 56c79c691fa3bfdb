// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// An iota over a split dimension begins where the device's block does; over another one it is local.

// CHECK-LABEL: func.func @main() -> (tensor<4x4xi32>, tensor<4x4xi32>)
// CHECK: [[C:%[a-z0-9_]+]] = stablehlo.constant dense<4> : tensor<ui32>
// CHECK: [[C_0:%[a-z0-9_]+]] = stablehlo.constant dense<2> : tensor<ui32>
// CHECK: [[V0:%[a-z0-9_]+]] = stablehlo.iota dim = 1 : tensor<4x4xi32>
// CHECK: [[V1:%[a-z0-9_]+]] = stablehlo.partition_id : tensor<ui32>
// CHECK: [[V2:%[a-z0-9_]+]] = stablehlo.remainder [[V1]], [[C_0]] : tensor<ui32>
// CHECK: [[V3:%[a-z0-9_]+]] = stablehlo.multiply [[V2]], [[C]] : tensor<ui32>
// CHECK: [[V4:%[a-z0-9_]+]] = stablehlo.convert [[V3]] : (tensor<ui32>) -> tensor<i32>
// CHECK: [[V5:%[a-z0-9_]+]] = stablehlo.broadcast_in_dim [[V4]], dims = [] : (tensor<i32>) -> tensor<4x4xi32>
// CHECK: [[V6:%[a-z0-9_]+]] = stablehlo.add [[V0]], [[V5]] : tensor<4x4xi32>
// CHECK: [[V7:%[a-z0-9_]+]] = stablehlo.iota dim = 0 : tensor<4x4xi32>
// CHECK: return [[V6]], [[V7]] : tensor<4x4xi32>, tensor<4x4xi32>
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main() -> (tensor<4x8xi32> {alpa.sharding = #alpa.sharding<RS0>}, tensor<4x8xi32> {alpa.sharding = #alpa.sharding<RS0>}) {
    %0 = stablehlo.iota dim = 1 {alpa.operands = [], alpa.results = [#alpa.sharding<RS0>], alpa.strategy = #alpa.strategy<b=[0]>} : tensor<4x8xi32>
    %1 = stablehlo.iota dim = 0 {alpa.operands = [], alpa.results = [#alpa.sharding<RS0>], alpa.strategy = #alpa.strategy<b=[0]>} : tensor<4x8xi32>
    return {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<RS0>], alpa.results = []} %0, %1 : tensor<4x8xi32>, tensor<4x8xi32>
  }
}
