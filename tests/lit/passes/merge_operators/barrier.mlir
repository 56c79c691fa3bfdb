// RUN: stablehlo-alpa-opt %s --alpa-merge-operators | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-print-sharding-rules=as-attributes --alpa-merge-operators | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-merge-operators --alpa-plan-pipeline="mesh=x:2 solution=1,2" --alpa-spmd-pipeline | FileCheck %s --check-prefix=LOCAL

// The parts of a barrier have shardings of their own, here rows and columns; on the device they
// wait for each other again.

// CHECK: %[[A:.+]] = stablehlo.optimization_barrier {alpa.barrier = 0 : i64, alpa.follows = 0 : i64, alpa.role = "follower"} %arg0 :
// CHECK: %[[B:.+]] = stablehlo.optimization_barrier {alpa.barrier = 0 : i64, alpa.follows = 0 : i64, alpa.role = "follower"} %arg1 :
// CHECK: return %[[A]], %[[B]]

// LOCAL: func.func @main(%[[X:.+]]: tensor<16x64xf32>, %[[Y:.+]]: tensor<64x16xf32>)
// LOCAL-NEXT: %[[R:.+]]:2 = stablehlo.optimization_barrier %[[X]], %[[Y]]
// LOCAL-NEXT: return %[[R]]#0, %[[R]]#1
func.func @main(%x: tensor<32x64xf32>, %y: tensor<64x32xf32>) -> (tensor<32x64xf32>, tensor<64x32xf32>) {
  %0:2 = stablehlo.optimization_barrier %x, %y : tensor<32x64xf32>, tensor<64x32xf32>
  return %0#0, %0#1 : tensor<32x64xf32>, tensor<64x32xf32>
}
