// RUN: stablehlo-alpa-opt %s -allow-unregistered-dialect -alpa-merge-operators -alpa-print-sharding-rules -alpa-plan-pipeline="mesh=x:2 solution=0,0,1" -alpa-spmd-pipeline 2>&1 | FileCheck %s

// Kernels of unknown dialects and custom calls are split by the rules that they carry: the sum that
// the first leaves goes through the second, which is linear.

// CHECK: remark: #alpa.rule<([a, b], [b, c]) -> ([a, c]) {a=4, b=8:sum, c=2}> leader
// CHECK: func.func @main(%[[X:.*]]: tensor<4x{{[48]}}xf32>
// CHECK: "other.matmul"(%{{.*}}, %{{.*}}) :
// CHECK-NOT: alpa
func.func @main(%a: tensor<4x8xf32>, %b: tensor<8x2xf32>) -> tensor<4x2xf32> {
  %0 = "other.matmul"(%a, %b) {alpa.rule = #alpa.rule<([i, k], [k, j]) -> ([i, j]) {i, k=sum, j}>} : (tensor<4x8xf32>, tensor<8x2xf32>) -> tensor<4x2xf32>
  %1 = stablehlo.custom_call @twice(%0) {alpa.rule = #alpa.rule<([i, j]) -> ([i, j]) {} linear(0)>} : (tensor<4x2xf32>) -> tensor<4x2xf32>
  return %1 : tensor<4x2xf32>
}
