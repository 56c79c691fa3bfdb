// RUN: stablehlo-alpa-opt %s -alpa-import-constraints -split-input-file -allow-unregistered-dialect -verify-diagnostics | FileCheck %s

// What only Shardy's propagation asks is not asked: barriers hand their operand on. Groups of several values, which
// `jax.experimental.shard_alike` makes, are remarked.
// CHECK-LABEL: func.func @of_shardy
// CHECK-SAME:  (%[[X:.*]]: tensor<8xf32>, %{{.*}})
// CHECK-NEXT:  return %[[X]]
func.func @of_shardy(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark @below {{sharding groups of 2 values are ignored: each is split as the plan finds best}}
  "sdy.sharding_group"(%x) <{group_id = 0 : i64}> : (tensor<8xf32>) -> ()
  "sdy.sharding_group"(%y) <{group_id = 0 : i64}> : (tensor<8xf32>) -> ()
  %0 = "sdy.propagation_barrier"(%x) <{allowed_direction = 1 : i32}> : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// CHECK-LABEL: func.func @stored
// CHECK-SAME:  (%[[X:.*]]: tensor<8xf32>, %{{.*}})
// CHECK-NEXT:  return %[[X]]
func.func @stored(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<8xf32> {
  // expected-remark @below {{sharding groups of 2 values are ignored: each is split as the plan finds best}}
  stablehlo.custom_call @xla.sdy.ShardingGroup(%x) {has_side_effect = true, mhlo.frontend_attributes = {xla.sdy.sharding_group_id = "12 : i64"}} : (tensor<8xf32>) -> ()
  stablehlo.custom_call @xla.sdy.ShardingGroup(%y) {has_side_effect = true, mhlo.frontend_attributes = {xla.sdy.sharding_group_id = "12 : i64"}} : (tensor<8xf32>) -> ()
  %0 = stablehlo.custom_call @xla.sdy.PropagationBarrier(%x) {has_side_effect = true, mhlo.frontend_attributes = {xla.sdy.allowed_direction = "2 : i32"}} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// One of a single value asks for nothing.
// CHECK-LABEL: func.func @alone
// CHECK-NEXT:  return
func.func @alone(%x: tensor<8xf32>) -> tensor<8xf32> {
  "sdy.sharding_group"(%x) <{group_id = 0 : i64}> : (tensor<8xf32>) -> ()
  return %x : tensor<8xf32>
}

// -----

// What only has the name stays as it is.
// CHECK-LABEL: func.func @other_types
// CHECK-NEXT:  "sdy.propagation_barrier"
// CHECK-NEXT:  "sdy.sharding_group"
// CHECK-NEXT:  @xla.sdy.FuncResultSharding
func.func @other_types(%x: tensor<8xf32>, %y: tensor<8xf32>) -> tensor<4xf32> {
  %0 = "sdy.propagation_barrier"(%x) : (tensor<8xf32>) -> tensor<4xf32>
  "sdy.sharding_group"(%x, %y) : (tensor<8xf32>, tensor<8xf32>) -> ()
  %1:2 = stablehlo.custom_call @xla.sdy.FuncResultSharding(%x, %y) : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>)
  return %0 : tensor<4xf32>
}
