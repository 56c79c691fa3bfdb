// RUN: stablehlo-alpa-opt %s -alpa-fence-exchanges | FileCheck %s

// What blocks are taken of is one value, whatever it is joined of.

// CHECK-LABEL: @joined
// CHECK: %[[BOTH:.+]] = stablehlo.concatenate
// CHECK-NEXT: %[[FENCE:.+]] = stablehlo.optimization_barrier %[[BOTH]] : tensor<4x4xf32>
// CHECK-NEXT: %[[MOVED:.+]] = "stablehlo.all_to_all"(%[[FENCE]])
// CHECK-NEXT: return %[[MOVED]]
func.func @joined(%a: tensor<2x4xf32>, %b: tensor<2x4xf32>) -> tensor<2x8xf32> {
  %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<2x4xf32>, tensor<2x4xf32>) -> tensor<4x4xf32>
  %1 = "stablehlo.all_to_all"(%0) <{concat_dimension = 1 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>, split_count = 2 : i64, split_dimension = 0 : i64}> : (tensor<4x4xf32>) -> tensor<2x8xf32>
  return %1 : tensor<2x8xf32>
}
