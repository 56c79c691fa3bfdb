// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// Where a block begins beyond what 32 bits hold, positions have 64.

// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[BLOCK:.+]] = stablehlo.constant dense<4294967296> : tensor<ui64>
// CHECK-DAG: %[[DEVICE:.+]] = stablehlo.partition_id : tensor<ui32>
// CHECK: %[[WIDE:.+]] = stablehlo.convert %[[DEVICE]] : (tensor<ui32>) -> tensor<ui64>
// CHECK: %[[AT:.+]] = stablehlo.remainder %[[WIDE]]
// CHECK: %[[FIRST:.+]] = stablehlo.multiply %[[AT]], %[[BLOCK]] : tensor<ui64>
// CHECK: %[[START:.+]] = stablehlo.convert %[[FIRST]] : (tensor<ui64>) -> tensor<i64>
// CHECK: stablehlo.broadcast_in_dim %[[START]], dims = [] : (tensor<i64>) -> tensor<4294967296xi64>
// CHECK: stablehlo.dynamic_slice %{{.+}}, %[[START]], sizes = [4294967296]
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8589934592xi8> {alpa.sharding = #alpa.sharding<R>}) -> (tensor<8589934592xf32> {alpa.sharding = #alpa.sharding<S0>}, tensor<8589934592xi8> {alpa.sharding = #alpa.sharding<S0>}) {
    %0 = stablehlo.iota dim = 0 {alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [], alpa.results = [#alpa.sharding<S0>]} : tensor<8589934592xf32>
    %1 = alpa.reshard %x from <R> to <S0> : tensor<8589934592xi8>
    return {alpa.operands = [#alpa.sharding<S0>, #alpa.sharding<S0>], alpa.results = []} %0, %1 : tensor<8589934592xf32>, tensor<8589934592xi8>
  }
}
