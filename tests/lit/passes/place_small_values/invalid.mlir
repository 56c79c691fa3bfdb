// RUN: not stablehlo-alpa-opt %s "-alpa-place-small-values=inputs=2" 2>&1 | FileCheck %s
// RUN: not stablehlo-alpa-opt %s "-alpa-place-small-values=results=-1" 2>&1 | FileCheck %s --check-prefix=RESULT

// CHECK: error: 'func.func' op has 1 arguments, none has the number 2
// RESULT: error: 'func.func' op has 1 results, none has the number -1
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  return %x : tensor<8xf32>
}
