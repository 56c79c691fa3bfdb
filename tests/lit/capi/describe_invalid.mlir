// RUN: not alpa-capi-test describe %s | FileCheck %s

// Nothing is said of what does not parse, and each answer says why.
// CHECK-COUNT-7: failed: module:[[#@LINE+2]]:{{[0-9]+}}: 'stablehlo.tanh' op requires a single operand
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.tanh"(%x, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}
