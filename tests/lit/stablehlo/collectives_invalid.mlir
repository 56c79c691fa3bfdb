// RUN: stablehlo-alpa-opt %s --split-input-file --verify-diagnostics

func.func @gather_dim(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{all-gather dimension 1 is not in [0, 1)}}
  %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @gather_result(%x: tensor<4xf32>) -> tensor<9xf32> {
  // expected-error @+1 {{result size 9 must be a multiple of 4, above 0}}
  %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<9xf32>
  return %0 : tensor<9xf32>
}

// -----

func.func @groups_twice(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{device 1 is in replica groups twice}}
  %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = dense<1> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @groups_rank(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{replica groups must have rank 2, but got 'tensor<2xi64>'}}
  %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = dense<[0, 1]> : tensor<2xi64>} : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @groups_huge(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{replica groups name more than 16777216 devices}}
  %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = dense<0> : tensor<1000000000x1000xi64>} : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @channel(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{global device ids need a channel above 0}}
  %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, use_global_device_ids} : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @all_reduce(%x: tensor<4xf32>) -> tensor<5xf32> {
  // expected-error @+1 {{result must have size 4 in dimension 0, but got 5}}
  %0 = "stablehlo.all_reduce"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<5xf32>
  return %0 : tensor<5xf32>
}

// -----

func.func @reduce_scatter(%x: tensor<5xf32>) -> tensor<2xf32> {
  // expected-error @+1 {{size of the scatter dimension 5 must be a multiple of 2, above 0}}
  %0 = "stablehlo.reduce_scatter"(%x) ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %c = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %c : tensor<f32>
  }) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, scatter_dimension = 0 : i64} : (tensor<5xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}

// -----

func.func @all_to_all_count(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{attribute 'split_count' failed to satisfy constraint: 64-bit signless integer attribute whose value is positive}}
  %0 = "stablehlo.all_to_all"(%x) {concat_dimension = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 0 : i64, split_dimension = 0 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @all_to_all_result(%x: tensor<4x4xf32>) -> tensor<4x4xf32> {
  // expected-error @+1 {{result must have size 2 in dimension 0, but got 4}}
  %0 = "stablehlo.all_to_all"(%x) {concat_dimension = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64} : (tensor<4x4xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

// -----

func.func @permute_targets(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{device 1 is target twice}}
  %0 = "stablehlo.collective_permute"(%x) {source_target_pairs = dense<[[0, 1], [2, 1]]> : tensor<2x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @permute_pairs(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{source-target pairs must be a tensor of pairs, but got 'tensor<1x3xi64>'}}
  %0 = "stablehlo.collective_permute"(%x) {source_target_pairs = dense<[[0, 1, 2]]> : tensor<1x3xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @permute_device(%x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-error @+1 {{source-target pairs name device -1}}
  %0 = "stablehlo.collective_permute"(%x) {source_target_pairs = dense<[[0, -1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

// -----

func.func @missing_device(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{replica groups lack device 1 of 2}}
  %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, 2]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @filled_group(%x: tensor<4xf32>) -> tensor<8xf32> {
  // expected-error @+1 {{replica groups name device -1, which is not in [0, 16777216]}}
  %0 = "stablehlo.all_gather"(%x) {all_gather_dim = 0 : i64, replica_groups = dense<[[0, -1]]> : tensor<1x2xi64>} : (tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @many_device_numbers() {
  // expected-error @+1 {{result #0 must be 0D tensor of 32-bit unsigned integer values, but got 'tensor<?xui32>'}}
  %0 = "stablehlo.partition_id"() : () -> tensor<?xui32>
  return
}
