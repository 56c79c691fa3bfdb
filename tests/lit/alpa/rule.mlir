// RUN: stablehlo-alpa-opt %s -allow-unregistered-dialect | stablehlo-alpa-opt -allow-unregistered-dialect | FileCheck %s

// Names of factors are not kept; their order is, as it is in the braces, and then as they come up.

// CHECK-LABEL: @sizes_of_the_shapes
func.func @sizes_of_the_shapes(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>) -> tensor<4x2xf32> {
  // CHECK: alpa.rule = #alpa.rule<([b, a], [a, c]) -> ([b, c]) {a=sum, b, c}>
  %0 = "other.matmul"(%a, %b) {alpa.rule = #alpa.rule<([i, k], [k, j]) -> ([i, j]) {k = sum}>} : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  return %0 : tensor<4x2xf32>
}

// CHECK-LABEL: @everything
func.func @everything(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK: alpa.rule = #alpa.rule<([a, b], [a, b]) -> ([a, b]) {a=4, b=8} linear(0, 1) linear(0) linear() untouched_operands(1) untouched_results(0) flops=64>
  %0 = "other.add"(%a, %b) {alpa.rule = #alpa.rule<([m, n], [m, n]) -> ([m, n]) {m=4, n=8} linear(0, 1) linear(0) linear() untouched_operands(1) untouched_results(0) flops=64>} : (tensor<4x8xf32>, tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// A set of linear operands that holds for real numbers only is another than one that holds always.
// CHECK-LABEL: @algebraic
func.func @algebraic(%a: tensor<4xf32>, %b: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: alpa.rule = #alpa.rule<([a], [a]) -> ([a]) {a=4} algebraic(0) linear(1)>
  %0 = "other.scale"(%a, %b) {alpa.rule = #alpa.rule<([m], [m]) -> ([m]) {m=4} algebraic(0) linear(1)>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  // CHECK: alpa.rule = #alpa.rule<([a], [a]) -> ([a]) {a=4} linear(0) linear(1)>
  %1 = "other.scale"(%0, %b) {alpa.rule = #alpa.rule<([m], [m]) -> ([m]) {m=4} linear(0) linear(1)>} : (tensor<4xf32>, tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}

// CHECK-LABEL: @dimensions_of_several_factors
func.func @dimensions_of_several_factors(%a: tensor<8x3x1xf32>) -> tensor<2x4xf32> {
  // CHECK: alpa.rule = #alpa.rule<([(a b), c, 1]) -> ([a, b]) {a=2, b=4, c=3:max} flops=1.500000e+00>
  %0 = "other.split"(%a) {alpa.rule = #alpa.rule<([(x y), z, 1]) -> ([x, y]) {x=2, y=4, z=3:max} flops=1.5>} : (tensor<8x3x1xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

// CHECK-LABEL: @accumulators
func.func @accumulators(%a: tensor<8xf32>, %b: tensor<4xf32>) -> tensor<8xf32> {
  // CHECK: alpa.rule = #alpa.rule<([a], [b]) -> ([a]) {a=8:replicated, b=4:sum} accumulators(0)>
  %0 = "other.scatter"(%a, %b) {alpa.rule = #alpa.rule<([a], [b]) -> ([a]) {a=8:replicated, b=4:sum} accumulators(0)>} : (tensor<8xf32>, tensor<4xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// What restricts an operator's own rule may stand on it.
// CHECK-LABEL: @restricted
func.func @restricted(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK: alpa.rule = #alpa.rule<([a, b]) -> ([a, b]) {a=4, b=8:replicated}>
  %0 = stablehlo.negate %a {alpa.rule = #alpa.rule<([a, b]) -> ([a, b]) {a=4, b=8:replicated}>} : tensor<4x8xf32>
  // What holds in floating point holds for real numbers.
  // CHECK: alpa.rule = #alpa.rule<([a, b]) -> ([a, b]) {a=4, b=8} algebraic(0)>
  %1 = stablehlo.negate %0 {alpa.rule = #alpa.rule<([a, b]) -> ([a, b]) {a=4, b=8} algebraic(0)>} : tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// A result without elements is the same on all devices whatever is split.
// CHECK-LABEL: @without_elements
func.func @without_elements(%a: tensor<4xf32>) -> tensor<4xf32> {
  // CHECK: alpa.rule = #alpa.rule<([a]) -> ([a], [b]) {a=4, b=0:replicated}>
  %0:2 = "other.kernel"(%a) {alpa.rule = #alpa.rule<([i]) -> ([i], [w]) {i=4, w=0:replicated}>} : (tensor<4xf32>) -> (tensor<4xf32>, tensor<0xui8>)
  return %0#0 : tensor<4xf32>
}
