// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// XLA adds the starts of a slice of a slice: the inner one is moved inside of its operand first, once.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<9x16xf32>, %[[ARG1:[a-z0-9]+]]: tensor<i32>)
// CHECK-DAG: [[ZERO:%[a-z0-9_]+]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-DAG: [[FIVE:%[a-z0-9_]+]] = stablehlo.constant dense<5> : tensor<i32>
// CHECK-DAG: [[EIGHT:%[a-z0-9_]+]] = stablehlo.constant dense<8> : tensor<i32>
// CHECK-DAG: [[ROW:%[a-z0-9_]+]] = stablehlo.clamp [[ZERO]], %[[ARG1]], [[FIVE]]
// CHECK-DAG: [[COLUMN:%[a-z0-9_]+]] = stablehlo.clamp [[ZERO]], %[[ARG1]], [[EIGHT]]
// CHECK: [[INNER:%[a-z0-9_]+]] = stablehlo.dynamic_slice %[[ARG0]], [[ROW]], [[COLUMN]], sizes = [4, 8]
// CHECK-NOT: stablehlo.clamp
// CHECK: stablehlo.dynamic_slice [[INNER]], {{.*}}, sizes = [4, 4]
// CHECK: stablehlo.dynamic_slice [[INNER]], {{.*}}, sizes = [2, 8]
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<9x16xf32> {alpa.sharding = #alpa.sharding<RR>}, %i: tensor<i32> {alpa.sharding = #alpa.sharding<>}) -> (tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RS0>}, tensor<4x8xf32> {alpa.sharding = #alpa.sharding<S0R>}) {
    %0 = stablehlo.dynamic_slice %x, %i, %i, sizes = [4, 8] {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<>, #alpa.sharding<>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : (tensor<9x16xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
    %1 = alpa.reshard %0 from <RR> to <RS0> : tensor<4x8xf32>
    %2 = alpa.reshard %0 from <RR> to <S0R> : tensor<4x8xf32>
    return {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<S0R>], alpa.results = []} %1, %2 : tensor<4x8xf32>, tensor<4x8xf32>
  }
}

// -----

// Operators that rearrange elements lie in between: XLA moves slices over them. A dimension that is taken whole starts at 0.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<8x4xf32>, %[[ARG1:[a-z0-9]+]]: tensor<i32>)
// CHECK-DAG: [[ZERO:%[a-z0-9_]+]] = stablehlo.constant dense<0> : tensor<i32>
// CHECK-DAG: [[TWO:%[a-z0-9_]+]] = stablehlo.constant dense<2> : tensor<i32>
// CHECK: [[COLUMN:%[a-z0-9_]+]] = stablehlo.clamp [[ZERO]], %[[ARG1]], [[TWO]]
// CHECK: [[INNER:%[a-z0-9_]+]] = stablehlo.dynamic_slice %[[ARG0]], [[ZERO]], [[COLUMN]], sizes = [8, 2]
// CHECK: stablehlo.transpose [[INNER]]
// CHECK: stablehlo.dynamic_slice {{.*}}, sizes = [1, 8, 1]
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8x4xf32> {alpa.sharding = #alpa.sharding<RR>}, %i: tensor<i32> {alpa.sharding = #alpa.sharding<>}) -> (tensor<2x8x1xf32> {alpa.sharding = #alpa.sharding<S0RR>}) {
    %0 = stablehlo.dynamic_slice %x, %i, %i, sizes = [8, 2] {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<>, #alpa.sharding<>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : (tensor<8x4xf32>, tensor<i32>, tensor<i32>) -> tensor<8x2xf32>
    %1 = stablehlo.transpose %0, dims = [1, 0] {alpa.operands = [#alpa.sharding<RR>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : (tensor<8x2xf32>) -> tensor<2x8xf32>
    %2 = stablehlo.broadcast_in_dim %1, dims = [0, 1] {alpa.operands = [#alpa.sharding<RR>], alpa.results = [#alpa.sharding<RRR>], alpa.strategy = #alpa.strategy<>} : (tensor<2x8xf32>) -> tensor<2x8x1xf32>
    %3 = alpa.reshard %2 from <RRR> to <S0RR> : tensor<2x8x1xf32>
    return {alpa.operands = [#alpa.sharding<S0RR>], alpa.results = []} %3 : tensor<2x8x1xf32>
  }
}

// -----

// A gather of one slice is one for XLA.

// CHECK: func.func @main(%[[ARG0:[a-z0-9]+]]: tensor<9x16xf32>, %[[ARG1:[a-z0-9]+]]: tensor<2xi32>)
// CHECK-DAG: [[ZERO:%[a-z0-9_]+]] = stablehlo.constant dense<0> : tensor<2xi32>
// CHECK-DAG: [[LAST:%[a-z0-9_]+]] = stablehlo.constant dense<[5, 8]> : tensor<2xi32>
// CHECK: [[STARTS:%[a-z0-9_]+]] = stablehlo.clamp [[ZERO]], %[[ARG1]], [[LAST]]
// CHECK: "stablehlo.gather"(%[[ARG0]], [[STARTS]])
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<9x16xf32> {alpa.sharding = #alpa.sharding<RR>}, %i: tensor<2xi32> {alpa.sharding = #alpa.sharding<R>}) -> (tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RS0>}) {
    %0 = "stablehlo.gather"(%x, %i) <{dimension_numbers = #stablehlo.gather<offset_dims = [0, 1], start_index_map = [0, 1]>, indices_are_sorted = false, slice_sizes = array<i64: 4, 8>}> {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<R>], alpa.results = [#alpa.sharding<RR>], alpa.strategy = #alpa.strategy<>} : (tensor<9x16xf32>, tensor<2xi32>) -> tensor<4x8xf32>
    %1 = alpa.reshard %0 from <RR> to <RS0> : tensor<4x8xf32>
    return {alpa.operands = [#alpa.sharding<RS0>], alpa.results = []} %1 : tensor<4x8xf32>
  }
}
