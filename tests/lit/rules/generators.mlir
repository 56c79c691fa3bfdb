// RUN: stablehlo-alpa-opt %s -alpa-print-sharding-rules -verify-diagnostics -o /dev/null

func.func @generators(%state: tensor<2xui64>) -> (tensor<4x8xi32>, tensor<4xf32>, tensor<2xf32>, tensor<2xui64>, tensor<4xui32>) {
  // expected-remark @below {{#alpa.rule<() -> ([a, b]) {a=4, b=8}> rematerialized}}
  %0 = stablehlo.iota dim = 1 : tensor<4x8xi32>
  // expected-remark @below {{#alpa.rule<() -> ([a]) {a=4}> rematerialized}}
  %1 = stablehlo.constant dense<1.0> : tensor<4xf32>
  // expected-remark @below {{#alpa.rule<() -> ([a]) {a=2:replicated}> rematerialized}}
  %2 = stablehlo.constant dense<[1.0, 2.0]> : tensor<2xf32>
  // expected-remark @below {{#alpa.rule<([a]) -> ([b], [c]) {a=2:replicated, b=2:replicated, c=4:replicated}> leader}}
  %3, %4 = stablehlo.rng_bit_generator %state, algorithm = THREE_FRY : (tensor<2xui64>) -> (tensor<2xui64>, tensor<4xui32>)
  return %0, %1, %2, %3, %4 : tensor<4x8xi32>, tensor<4xf32>, tensor<2xf32>, tensor<2xui64>, tensor<4xui32>
}
