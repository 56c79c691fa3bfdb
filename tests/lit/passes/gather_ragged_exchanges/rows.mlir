// RUN: stablehlo-alpa-opt %s -alpa-gather-ragged-exchanges -split-input-file | FileCheck %s

// Rows, offsets and sizes of all devices are gathered; those for this device are taken, and the place keeps the others.

// CHECK-LABEL: @rows
// CHECK-SAME: %[[ROWS:.+]]: tensor<4x8xf32>, %[[PLACE:.+]]: tensor<6x8xf32>
// CHECK-DAG: stablehlo.partition_id
// CHECK-DAG: stablehlo.constant dense<[0, 1, 0, 1]> : tensor<4xi32>
// CHECK-DAG: stablehlo.constant dense<[0, 0, 4, 4]> : tensor<4xi32>
// CHECK: %[[ALL:.+]] = "stablehlo.all_gather"(%[[ROWS]]) <{all_gather_dim = 0 : i64, channel_handle = #stablehlo.channel_handle<handle = 7, type = 1>, replica_groups = dense<{{\[\[}}0, 1], [2, 3]]> : tensor<2x2xi64>, use_global_device_ids}> : (tensor<4x8xf32>) -> tensor<8x8xf32>
// CHECK: %[[BOTH:.+]] = stablehlo.concatenate %[[ALL]], %[[PLACE]], dim = 0
// CHECK: %[[TAKEN:.+]] = "stablehlo.gather"(%[[BOTH]]
// CHECK: return %[[TAKEN]] : tensor<6x8xf32>
func.func @rows(%rows: tensor<4x8xf32>, %place: tensor<6x8xf32>, %starts: tensor<4xi32>, %sizes: tensor<4xi32>, %targets: tensor<4xi32>, %received: tensor<4xi32>) -> tensor<6x8xf32> {
  %0 = "stablehlo.custom_call"(%rows, %place, %starts, %sizes, %targets, %received) <{api_version = 4 : i32, backend_config = {channel_id = 7 : i64, replica_groups = dense<[[0, 1], [2, 3]]> : tensor<2x2xi64>}, call_target_name = "ragged_all_to_all"}> : (tensor<4x8xf32>, tensor<6x8xf32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>, tensor<4xi32>) -> tensor<6x8xf32>
  return %0 : tensor<6x8xf32>
}

// -----

// Calls of another kind, and those that do not say their groups, stay.

// CHECK-LABEL: @others
// CHECK-NOT: all_gather
// CHECK: @exchange
// CHECK: @ragged_all_to_all
func.func @others(%rows: tensor<4x8xf32>, %place: tensor<6x8xf32>, %s: tensor<2xi32>) -> (tensor<6x8xf32>, tensor<6x8xf32>) {
  %0 = "stablehlo.custom_call"(%rows, %place, %s, %s, %s, %s) <{api_version = 4 : i32, backend_config = {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}, call_target_name = "exchange"}> : (tensor<4x8xf32>, tensor<6x8xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<6x8xf32>
  %1 = "stablehlo.custom_call"(%rows, %place, %s, %s, %s, %s) <{api_version = 4 : i32, backend_config = {}, call_target_name = "ragged_all_to_all"}> : (tensor<4x8xf32>, tensor<6x8xf32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>, tensor<2xi32>) -> tensor<6x8xf32>
  return %0, %1 : tensor<6x8xf32>, tensor<6x8xf32>
}
