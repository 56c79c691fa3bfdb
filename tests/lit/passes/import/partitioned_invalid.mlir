// RUN: stablehlo-alpa-opt %s -alpa-import -split-input-file -allow-unregistered-dialect -verify-diagnostics

func.func @numbers_of_devices() -> tensor<ui32> {
  // expected-error @below {{'stablehlo.partition_id' is partitioned by hand already (shard_map); it cannot be planned}}
  %0 = stablehlo.partition_id : tensor<ui32>
  return %0 : tensor<ui32>
}

// -----

func.func @numbers_of_replicas() -> tensor<ui32> {
  // expected-error @below {{'stablehlo.replica_id' is partitioned by hand already (shard_map); it cannot be planned}}
  %0 = stablehlo.replica_id : tensor<ui32>
  return %0 : tensor<ui32>
}

// -----

func.func @collectives(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'stablehlo.all_reduce' is partitioned by hand already (shard_map); it cannot be planned}}
  %0 = "stablehlo.all_reduce"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %1 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @sums_of_replicas(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'stablehlo.cross-replica-sum' is partitioned by hand already (shard_map); it cannot be planned}}
  %0 = "stablehlo.cross-replica-sum"(%x) <{replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @in_a_branch(%p: tensor<i1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = "stablehlo.if"(%p) ({
    // expected-error @below {{'stablehlo.collective_permute' is partitioned by hand already (shard_map); it cannot be planned}}
    %1 = "stablehlo.collective_permute"(%x) <{source_target_pairs = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    stablehlo.return %1 : tensor<4xf32>
  }, {
    stablehlo.return %x : tensor<4xf32>
  }) : (tensor<i1>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @of_shardy(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @below {{'sdy.all_gather' is partitioned by hand already (shard_map); it cannot be planned}}
  %0 = "sdy.all_gather"(%x) : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @from_the_host(%t: !stablehlo.token) -> tensor<4xf32> {
  // expected-error @below {{'stablehlo.infeed' would run on every device; it cannot be planned}}
  %0:2 = "stablehlo.infeed"(%t) : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  return %0#0 : tensor<4xf32>
}

// -----

// What an author has split by hand stands for itself.
func.func @manual(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = alpa.manual (%x) on <["x"=2]> ins [[["x"]]] outs [[["x"]]] : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: tensor<4xf32>):
    %1 = "stablehlo.collective_permute"(%a) <{source_target_pairs = dense<[[0, 1], [1, 0]]> : tensor<2x2xi64>}> : (tensor<4xf32>) -> tensor<4xf32>
    alpa.yield %1 : tensor<4xf32>
  }
  return %0 : tensor<8xf32>
}

// -----

func.func @stored(%x: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'stablehlo.custom_call' @xla.sdy.GlobalToLocalShape is partitioned by hand already (shard_map); it cannot be planned}}
  %0 = stablehlo.custom_call @xla.sdy.GlobalToLocalShape(%x) {has_side_effect = true, mhlo.frontend_attributes = {xla.sdy.in_shardings = "#sdy.sharding_per_value<[<@mesh, [{\22x\22}]>]>", xla.sdy.manual_axes = "#sdy<manual_axes{\22x\22}>"}} : (tensor<8xf32>) -> tensor<4xf32>
  %1 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%0) {has_side_effect = true} : (tensor<4xf32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// -----

// Of parts that are made of nothing.
func.func @stored_results(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @below {{'stablehlo.custom_call' @xla.sdy.LocalToGlobalShape is partitioned by hand already (shard_map); it cannot be planned}}
  %0 = stablehlo.custom_call @xla.sdy.LocalToGlobalShape(%x) {has_side_effect = true} : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @as_gspmd(%x: tensor<8xf32>) -> tensor<4xf32> {
  // expected-error @below {{'stablehlo.custom_call' @SPMDFullToShardShape is partitioned by hand already (shard_map); it cannot be planned}}
  %0 = stablehlo.custom_call @SPMDFullToShardShape(%x) : (tensor<8xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}
