// RUN: stablehlo-alpa-opt %s -pass-pipeline='builtin.module(alpa-merge-operators,alpa-enumerate-strategies{mesh=x:2})' 2>&1 | FileCheck %s

// CHECK: dot_general{{.*}}S0R,RR->S0R
// CHECK-SAME: RS0,S0R->RRP0
func.func @main(%x: tensor<16x32xf32>, %w: tensor<32x64xf32>) -> tensor<16x64xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  return %0 : tensor<16x64xf32>
}
