// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-lower-to-spmd -alpa-verify-spmd -canonicalize -cse | FileCheck %s

// The greatest are among the greatest of the blocks; where blocks are shorter, all of them are candidates.

// CHECK-LABEL: func.func @main(%{{.+}}: tensor<4x8xf32>)
// CHECK: %[[V:.+]], %[[I:.+]] = chlo.top_k(%arg0, k = 3) : tensor<4x8xf32>
// CHECK: %[[G:.+]] = stablehlo.add %[[I]], %{{.+}} : tensor<4x3xi32>
// CHECK-DAG: %[[VS:.+]] = "stablehlo.all_gather"(%[[V]]) <{all_gather_dim = 1 {{.*}} : (tensor<4x3xf32>) -> tensor<4x6xf32>
// CHECK-DAG: %[[IS:.+]] = "stablehlo.all_gather"(%[[G]]) <{all_gather_dim = 1 {{.*}} : (tensor<4x3xi32>) -> tensor<4x6xi32>
// CHECK: %[[SORTED:.+]]:2 = "stablehlo.sort"(%[[VS]], %[[IS]]) <{dimension = 1 : i64, is_stable = false}> ({
// CHECK: ^bb0(%[[A:.+]]: tensor<f32>, %[[B:.+]]: tensor<f32>, %[[P:.+]]: tensor<i32>, %[[Q:.+]]: tensor<i32>):
// CHECK-DAG: %[[GREATER:.+]] = stablehlo.compare GT, %[[A]], %[[B]], TOTALORDER
// CHECK-DAG: %[[EQUAL:.+]] = stablehlo.compare EQ, %[[A]], %[[B]], TOTALORDER
// CHECK-DAG: %[[FIRST:.+]] = stablehlo.compare LT, %[[P]], %[[Q]], SIGNED
// CHECK: %[[ORDER:.+]] = stablehlo.select %[[EQUAL]], %[[FIRST]], %[[GREATER]]
// CHECK: stablehlo.return %[[ORDER]]
// CHECK-DAG: %[[BEST:.+]] = stablehlo.slice %[[SORTED]]#0 [0:4, 0:3]
// CHECK-DAG: %[[FOUND:.+]] = stablehlo.slice %[[SORTED]]#1 [0:4, 0:3]
// CHECK: return %[[BEST]], %[[FOUND]]
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<4x16xf32> {alpa.sharding = #alpa.sharding<RS0>}) -> (tensor<4x3xf32> {alpa.sharding = #alpa.sharding<RR>}, tensor<4x3xi32> {alpa.sharding = #alpa.sharding<RR>}) {
    %v, %i = chlo.top_k(%x, k = 3) {alpa.strategy = #alpa.strategy<b=[0]>, alpa.operands = [#alpa.sharding<RS0>], alpa.results = [#alpa.sharding<RR>, #alpa.sharding<RR>]} : tensor<4x16xf32> -> (tensor<4x3xf32>, tensor<4x3xi32>)
    return {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>], alpa.results = []} %v, %i : tensor<4x3xf32>, tensor<4x3xi32>
  }
}

// -----

// CHECK-LABEL: func.func @main(%{{.+}}: tensor<4xf32>)
// CHECK: chlo.top_k(%arg0, k = 4) : tensor<4xf32>
// CHECK: "stablehlo.sort"
// CHECK: stablehlo.slice %{{.+}}#0 [0:7]
module attributes {alpa.mesh = #alpa.mesh<["x"=2]>} {
  func.func @main(%x: tensor<8xf32> {alpa.sharding = #alpa.sharding<S0>}) -> (tensor<7xf32> {alpa.sharding = #alpa.sharding<R>}, tensor<7xi32> {alpa.sharding = #alpa.sharding<R>}) {
    %v, %i = chlo.top_k(%x, k = 7) {alpa.strategy = #alpa.strategy<a=[0]>, alpa.operands = [#alpa.sharding<S0>], alpa.results = [#alpa.sharding<R>, #alpa.sharding<R>]} : tensor<8xf32> -> (tensor<7xf32>, tensor<7xi32>)
    return {alpa.operands = [#alpa.sharding<R>, #alpa.sharding<R>], alpa.results = []} %v, %i : tensor<7xf32>, tensor<7xi32>
  }
}
