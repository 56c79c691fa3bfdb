// RUN: mlir-opt --load-dialect-plugin=%plugin --load-pass-plugin=%plugin %s -pass-pipeline='builtin.module(alpa-import-rules,alpa-import{aliases=0:0},alpa-merge-operators,alpa-enumerate-strategies{mesh=x:2},alpa-print-sharding-rules,alpa-choose-strategies{mesh=x:2 solution=0},alpa-apply-strategies,alpa-insert-reshards,alpa-optimize-collectives,alpa-move-reshards,alpa-verify-plan,alpa-lower-to-spmd,alpa-verify-spmd)' | FileCheck %s

// CHECK-NOT: alpa
// CHECK: stablehlo.tanh
// CHECK-NOT: alpa
func.func @main(%x: tensor<16x32xf32>) -> tensor<16x32xf32> {
  %1 = stablehlo.tanh %x : tensor<16x32xf32>
  return %1 : tensor<16x32xf32>
}
