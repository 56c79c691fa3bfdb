// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=donated=0 -o /dev/null 2>&1 | FileCheck %s
// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s --check-prefix=KEPT

// An update is written over a donated argument, and lives from the next point on.

// CHECK: remark: argument 0 lives from 0 to 1
// CHECK: remark: result 0 lives from 2 to 2

// KEPT: remark: argument 0 lives from 0 to 2
// KEPT: remark: result 0 lives from 1 to 2

func.func @main(%x: tensor<64x8xf32>, %u: tensor<1x8xf32>, %i: tensor<i32>) -> tensor<64x8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.dynamic_update_slice %x, %u, %i, %zero : (tensor<64x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<64x8xf32>
  return %0 : tensor<64x8xf32>
}
