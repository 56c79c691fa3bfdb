// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// A sum that begins with a value: only the first device begins with it, the
// others with zero.
// CHECK: func.func @main(%[[X:[a-z0-9]+]]: tensor<4x4xf32>, %[[C:[a-z0-9]+]]: tensor<f32>)
// CHECK: %[[ZERO:[a-z0-9_]+]] = stablehlo.constant dense<0.000000e+00> : tensor<f32>
// CHECK: stablehlo.partition_id
// CHECK: %[[FIRST:[a-z0-9_]+]] = stablehlo.compare EQ
// CHECK: %[[INIT:[a-z0-9_]+]] = stablehlo.select %[[FIRST]], %[[C]], %[[ZERO]]
// CHECK: stablehlo.reduce(%[[X]] init: %[[INIT]]) applies stablehlo.add across dimensions = [1]
// CHECK: stablehlo.all_reduce
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4x8xf32> {alpa.sharding = #alpa.sharding<RS0>}, %c: tensor<f32> {alpa.sharding = #alpa.sharding<>}) -> (tensor<4xf32> {alpa.sharding = #alpa.sharding<R>}) {
    %0 = stablehlo.reduce(%x init: %c) applies stablehlo.add across dimensions = [1] {alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<>], alpa.results = [#alpa.sharding<RP0>], alpa.strategy = #alpa.strategy<b=[0]>} : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
    %1 = alpa.reshard %0 from <RP0> to <R> : tensor<4xf32>
    return {alpa.operands = [#alpa.sharding<R>], alpa.results = []} %1 : tensor<4xf32>
  }
}
