// RUN: stablehlo-alpa-opt %s -allow-unregistered-dialect -alpa-import-rules -verify-diagnostics | FileCheck %s

// CHECK-LABEL: @kinds
func.func @kinds(%a: tensor<8x16x3xf32>, %b: tensor<16x4xf32>) -> tensor<8x4x5xf32> {
  // Rows and columns, a sum, what Shardy replicates, and what only a result has.
  // CHECK: custom_call @kernel(%{{.*}}, %{{.*}}) {alpa.rule = #alpa.rule<([a, b, c], [b, d]) -> ([a, d, e]) {a=8, b=16:sum, c=3:replicated, d=4, e=5:replicated}>}
  %0 = stablehlo.custom_call @kernel(%a, %b) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k], [j, l])->([i, l, m]) {i=8, j=16, k=3, l=4, m=5} reduction={j} need_replication={k}, custom>} : (tensor<8x16x3xf32>, tensor<16x4xf32>) -> tensor<8x4x5xf32>
  return %0 : tensor<8x4x5xf32>
}

// CHECK-LABEL: @compound_and_scalars
func.func @compound_and_scalars(%a: tensor<8x4xf32>, %b: tensor<f32>) -> tensor<2x4x4xf32> {
  // CHECK: {alpa.rule = #alpa.rule<([(a b), c], []) -> ([a, b, c]) {a=2, b=4, c=4}>}
  %0 = stablehlo.custom_call @split(%a, %b) {sdy.sharding_rule = #sdy.op_sharding_rule<([ij, z_1], [])->([i, j, z_1]) {i=2, j=4, z_1=4} blocked_propagation={i}>} : (tensor<8x4xf32>, tensor<f32>) -> tensor<2x4x4xf32>
  return %0 : tensor<2x4x4xf32>
}

// Nothing could be split, other than by what is known already, or side effects would be repeated.
// CHECK-LABEL: @left_out
func.func @left_out(%a: tensor<8x4xf32>, %b: tensor<4x3x3xf32>) -> tensor<8x4xf32> {
  // CHECK: custom_call @whole(%{{.*}}) :
  %0 = stablehlo.custom_call @whole(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([k, l]) {i=8, j=4, k=8, l=4}>} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // CHECK: custom_call @batched(%{{.*}}) {mhlo.frontend_attributes = {num_batch_dims = "1"}} :
  %1 = stablehlo.custom_call @batched(%b) {mhlo.frontend_attributes = {num_batch_dims = "1"}, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j, k])->([i, l, m]) {i=4, j=3, k=3, l=3, m=3}>} : (tensor<4x3x3xf32>) -> tensor<4x3x3xf32>
  // CHECK: custom_call @prints(%{{.*}}) {has_side_effect = true} :
  %2 = stablehlo.custom_call @prints(%a) {has_side_effect = true, sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4}>} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// CHECK-LABEL: @does_not_fit
func.func @does_not_fit(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-remark @below {{of @kernel is left out: 'stablehlo.custom_call' op sharding rule makes dimension 0 of operand 0 of size 9, it has size 8}}
  %0 = stablehlo.custom_call @kernel(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=9, j=4}>} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  // expected-remark @below {{of @kernel is left out: it is not in Shardy's notation}}
  %1 = stablehlo.custom_call @kernel(%0) {sdy.sharding_rule = "i j -> i j"} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %1 : tensor<8x4xf32>
}

// A rule that says what the operator says itself is dropped, one that says less is kept.
// CHECK-LABEL: @own
func.func @own(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK-NEXT: stablehlo.negate %{{.*}} : tensor<8x4xf32>
  %0 = stablehlo.negate %a {alpa.rule = #alpa.rule<([i, j]) -> ([i, j]) {i, j} linear(0)>} : tensor<8x4xf32>
  // CHECK-NEXT: stablehlo.negate %{{.*}} {alpa.rule
  %1 = stablehlo.negate %0 {alpa.rule = #alpa.rule<([i, j]) -> ([i, j]) {i, j}>} : tensor<8x4xf32>
  // CHECK-NEXT: custom_call @kernel(%{{.*}}) {alpa.rule
  %2 = stablehlo.custom_call @kernel(%1) {alpa.rule = #alpa.rule<([i, j]) -> ([i, j]) {i, j}>} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %2 : tensor<8x4xf32>
}

// As XLA stores it.
// CHECK-LABEL: @stored
func.func @stored(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // CHECK-NEXT: custom_call @kernel(%{{.*}}) {alpa.rule = #alpa.rule<([a, b]) -> ([a, b]) {a=8, b=4}>} :
  %0 = stablehlo.custom_call @kernel(%a) {mhlo.frontend_attributes = {xla.sdy.sharding_rule = "#sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4}>"}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
