// RUN: not alpa-capi-test text %s | FileCheck %s
// RUN: not alpa-capi-test context %s | FileCheck %s --check-prefix=CONTEXT

// Errors say where.
module {
  func.func public @main(%x: tensor<8xf32>) -> tensor<8xf32> {
    // CHECK: failed: module:[[#@LINE+2]]:{{[0-9]+}}: 'stablehlo.tanh' op requires a single operand
    // CONTEXT: diagnostic at {{.*}}:[[#@LINE+1]]:{{[0-9]+}}{{.*}}tanh
    %0 = "stablehlo.tanh"(%x, %x) : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xf32>
    return %0 : tensor<8xf32>
  }
}
