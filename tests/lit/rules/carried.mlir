// RUN: stablehlo-alpa-opt %s -allow-unregistered-dialect -alpa-print-sharding-rules -verify-diagnostics -o /dev/null
// RUN: stablehlo-alpa-opt %s -allow-unregistered-dialect -alpa-print-sharding-rules=as-attributes | FileCheck %s

// A rule that an operator carries stands for its own, with the sizes that its shapes give.

// CHECK-LABEL: @unknown_dialect
func.func @unknown_dialect(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>) -> tensor<4x2xf32> {
  // CHECK: alpa.rule = #alpa.rule<([a, b], [b, c]) -> ([a, c]) {a=4, b=8:sum, c=2} linear(0)>
  // expected-remark @below {{#alpa.rule<([a, b], [b, c]) -> ([a, c]) {a=4, b=8:sum, c=2} linear(0)> leader}}
  %0 = "other.matmul"(%a, %b) {alpa.rule = #alpa.rule<([i, k], [k, j]) -> ([i, j]) {i, k=sum, j} linear(0)>} : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// CHECK-LABEL: @restricted
func.func @restricted(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-remark @below {{#alpa.rule<([a, b]) -> ([a, b]) {a=4, b=8:replicated}> follower}}
  %0 = stablehlo.negate %a {alpa.rule = #alpa.rule<([a, b]) -> ([a, b]) {a, b=replicated}>} : tensor<4x8xf32>
  // CHECK: stablehlo.tanh %{{.*}} {alpa.rule = #alpa.rule<([a, b]) -> ([a, b]) {a=4, b=8}>}
  // expected-remark @below {{#alpa.rule<([a, b]) -> ([a, b]) {a=4, b=8}> follower}}
  %1 = stablehlo.tanh %0 : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}
