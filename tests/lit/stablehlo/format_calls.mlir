// RUN: stablehlo-alpa-opt %s -o %t.once && stablehlo-alpa-opt %t.once | diff %t.once -
// RUN: stablehlo-alpa-opt %s -mlir-print-op-generic -o %t.generic && stablehlo-alpa-opt %t.generic | diff %t.once -
// RUN: FileCheck %s < %t.once

// Calls, tuples, transfers, normalization and what others have replaced.

func.func private @relu(%x: tensor<4xf32>) -> tensor<4xf32> {
  return %x : tensor<4xf32>
}

// CHECK-LABEL: @calls
func.func @calls(%x: tensor<4xf32>, %t: tuple<tensor<4xf32>, tensor<2x3xf32>>) -> tensor<4xf32> {
  // CHECK: stablehlo.composite "my.relu" %{{.*}} {composite_attributes = {alpha = 1 : i64}, decomposition = @relu, version = 2 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  %0 = stablehlo.composite "my.relu" %x {composite_attributes = {alpha = 1 : i64}, decomposition = @relu, version = 2 : i32} : (tensor<4xf32>) -> tensor<4xf32>
  // CHECK: stablehlo.get_tuple_element %{{.*}}[1] : (tuple<tensor<4xf32>, tensor<2x3xf32>>) -> tensor<2x3xf32>
  %1 = stablehlo.get_tuple_element %t[1] : (tuple<tensor<4xf32>, tensor<2x3xf32>>) -> tensor<2x3xf32>
  // CHECK: stablehlo.tuple %{{.*}}, %{{.*}} : tuple<tensor<4xf32>, tensor<2x3xf32>>
  %2 = stablehlo.tuple %0, %1 : tuple<tensor<4xf32>, tensor<2x3xf32>>
  // CHECK: stablehlo.custom_call @split(%{{.*}}) {operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<> : tensor<0xindex>]}
  %3:2 = stablehlo.custom_call @split(%1) {operand_layouts = [dense<[0, 1]> : tensor<2xindex>], output_operand_aliases = [#stablehlo.output_operand_alias<output_tuple_indices = [0], operand_index = 0, operand_tuple_indices = []>], result_layouts = [dense<[1, 0]> : tensor<2xindex>, dense<> : tensor<0xindex>]} : (tensor<2x3xf32>) -> (tensor<2x3xf32>, tensor<f32>)
  return %0 : tensor<4xf32>
}

// CHECK-LABEL: @transfers
func.func @transfers(%x: tensor<4xf32>, %token: !stablehlo.token) -> !stablehlo.token {
  // CHECK: "stablehlo.send"
  %0 = "stablehlo.send"(%x, %token) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 2>, is_host_transfer = true} : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
  // CHECK: "stablehlo.recv"
  %1:2 = "stablehlo.recv"(%0) {channel_handle = #stablehlo.channel_handle<handle = 5, type = 3>, is_host_transfer = true} : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  // CHECK: "stablehlo.infeed"
  %2:2 = "stablehlo.infeed"(%1#1) {infeed_config = "", layout = [[0]]} : (!stablehlo.token) -> (tensor<4xf32>, !stablehlo.token)
  // CHECK: "stablehlo.outfeed"
  %3 = "stablehlo.outfeed"(%2#0, %2#1) {outfeed_config = ""} : (tensor<4xf32>, !stablehlo.token) -> !stablehlo.token
  return %3 : !stablehlo.token
}

// CHECK-LABEL: @normalization
func.func @normalization(%x: tensor<2x8x4xf32>, %v: tensor<4xf32>) {
  // CHECK: "stablehlo.batch_norm_inference"
  %0 = "stablehlo.batch_norm_inference"(%x, %v, %v, %v, %v) {epsilon = 1.000000e-03 : f32, feature_index = 2 : i64} : (tensor<2x8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>) -> tensor<2x8x4xf32>
  // CHECK: "stablehlo.batch_norm_training"
  %1:3 = "stablehlo.batch_norm_training"(%x, %v, %v) {epsilon = 1.000000e-03 : f32, feature_index = 2 : i64} : (tensor<2x8x4xf32>, tensor<4xf32>, tensor<4xf32>) -> (tensor<2x8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  // CHECK: "stablehlo.batch_norm_grad"
  %2:3 = "stablehlo.batch_norm_grad"(%x, %v, %v, %v, %x) {epsilon = 1.000000e-03 : f32, feature_index = 2 : i64} : (tensor<2x8x4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<4xf32>, tensor<2x8x4xf32>) -> (tensor<2x8x4xf32>, tensor<4xf32>, tensor<4xf32>)
  return
}

// CHECK-LABEL: @deprecated
func.func @deprecated(%x: tensor<4x8xf32>, %y: tensor<8x2xf32>, %at: tensor<3xi32>) {
  // CHECK: stablehlo.einsum %{{.*}}, %{{.*}}, config = "ab,bc->ac" : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  %0 = stablehlo.einsum %x, %y, config = "ab,bc->ac" : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  // CHECK: stablehlo.unary_einsum %{{.*}}, config = "ab->a" : (tensor<4x8xf32>) -> tensor<4xf32>
  %1 = stablehlo.unary_einsum %x, config = "ab->a" : (tensor<4x8xf32>) -> tensor<4xf32>
  // CHECK: "stablehlo.torch_index_select"
  %2 = "stablehlo.torch_index_select"(%x, %at) {batch_dims = 0 : i64, dim = 0 : i64} : (tensor<4x8xf32>, tensor<3xi32>) -> tensor<3x8xf32>
  // CHECK: "stablehlo.cross-replica-sum"
  %3 = "stablehlo.cross-replica-sum"(%x) {replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return
}

// A part of what a complex number has: a real number has it, too.
// CHECK-LABEL: @accuracy
func.func @accuracy(%x: tensor<4xf64>) -> tensor<4xf64> {
  // CHECK: stablehlo.real %{{.*}} : tensor<4xf64>
  %0 = stablehlo.real %x : tensor<4xf64>
  // CHECK: stablehlo.exponential %{{.*}} {result_accuracy = #stablehlo.result_accuracy<atol = {{.*}}, ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<4xf64>
  %1 = stablehlo.exponential %0 {result_accuracy = #stablehlo.result_accuracy<atol = 1.0e-5, ulps = 2, mode = #stablehlo.result_accuracy_mode<TOLERANCE>>} : tensor<4xf64>
  return %1 : tensor<4xf64>
}
