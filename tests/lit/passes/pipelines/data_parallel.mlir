// RUN: stablehlo-alpa-opt %s --alpa-prepare-pipeline=aliases=1:1 | FileCheck %s --check-prefix=PREPARED
// RUN: stablehlo-alpa-opt %s --alpa-prepare-pipeline=aliases=1:1 --alpa-plan-pipeline="mesh=x:2 solution=1,0,1,1,3,1" | FileCheck %s --check-prefix=PLANNED
// RUN: stablehlo-alpa-opt %s --alpa-prepare-pipeline=aliases=1:1 --alpa-plan-pipeline="mesh=x:2 solution=1,0,1,1,3,1" --alpa-spmd-pipeline | FileCheck %s --check-prefix=LOCAL

// A step from a traced module to the module for one device: the batch is split, the gradient is
// reduce-scattered, the update is done in parts and gathered (weight-update sharding).

// Functions are inlined, roles are written, sums that are used more than once get a resolve.
// PREPARED: func.func public @main(%[[X:.+]]: tensor<4x8xf32>, %[[W:.+]]: tensor<8x6xf32> {alpa.alias = 1 : i64})
// PREPARED: %[[Y:.+]] = stablehlo.dot_general %[[X]], %[[W]]{{.*}}{alpa.role = "leader"}
// PREPARED: %[[R:.+]] = alpa.resolve %[[Y]] {alpa.role = "leader"}
// PREPARED: stablehlo.tanh %[[R]] {alpa.follows = 0 : i64, alpa.role = "follower"}
// PREPARED: stablehlo.subtract %[[W]], %{{.+}} {alpa.follows = 1 : i64, alpa.role = "follower"}
// PREPARED-NOT: call

// PLANNED: module attributes {alpa.mesh = #alpa.mesh<["x"=2]>}
// PLANNED: %[[G:.+]] = stablehlo.dot_general{{.*}}alpa.operands = [#alpa.sharding<S0R>, #alpa.sharding<S0R>], alpa.results = [#alpa.sharding<RRP0>]
// PLANNED: alpa.reshard %[[G]] from <RRP0> to <S0R>
// PLANNED: %[[U:.+]] = stablehlo.subtract{{.*}}alpa.results = [#alpa.sharding<S0R>]
// PLANNED: alpa.reshard %[[U]] from <S0R> to <RR>

// LOCAL: func.func public @main(%[[X:.+]]: tensor<2x8xf32>, %[[W:.+]]: tensor<8x6xf32>) -> (tensor<2x6xf32>, tensor<8x6xf32>)
// LOCAL: %[[G:.+]] = stablehlo.dot_general{{.*}}(tensor<2x8xf32>, tensor<2x6xf32>) -> tensor<8x6xf32>
// LOCAL: %[[S:.+]] = "stablehlo.reduce_scatter"(%[[G]])
// LOCAL: (tensor<8x6xf32>) -> tensor<4x6xf32>
// LOCAL: %[[P:.+]] = stablehlo.dynamic_slice %[[W]]
// LOCAL: %[[U:.+]] = stablehlo.subtract %[[P]], %[[S]] : tensor<4x6xf32>
// LOCAL: "stablehlo.all_gather"(%[[U]])
// LOCAL-NOT: alpa.
func.func public @main(%x: tensor<4x8xf32>, %w: tensor<8x6xf32>) -> (tensor<4x6xf32>, tensor<8x6xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<4x8xf32>, tensor<8x6xf32>) -> tensor<4x6xf32>
  %1 = call @activation(%0) : (tensor<4x6xf32>) -> tensor<4x6xf32>
  %2 = stablehlo.dot_general %x, %1, contracting_dims = [0] x [0] : (tensor<4x8xf32>, tensor<4x6xf32>) -> tensor<8x6xf32>
  %3 = stablehlo.subtract %w, %2 : tensor<8x6xf32>
  return %1, %3 : tensor<4x6xf32>, tensor<8x6xf32>
}

func.func private @activation(%x: tensor<4x6xf32>) -> tensor<4x6xf32> {
  %0 = stablehlo.tanh %x : tensor<4x6xf32>
  return %0 : tensor<4x6xf32>
}
