// RUN: stablehlo-alpa-opt %s --alpa-pad-dimensions="multiple=8 most-added=1" 2>/dev/null | FileCheck %s

// Rows, sums and columns become longer; groups have sizes and stay as many. Zeros stand behind what is summed over.
// CHECK-LABEL: func.func public @main
// CHECK-DAG: %[[ROWS:.*]] = stablehlo.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<32x24xi1>, tensor<32x24xf32>
// CHECK-DAG: %[[WEIGHTS:.*]] = stablehlo.select %{{.*}}, %{{.*}}, %{{.*}} : tensor<5x24x16xi1>, tensor<5x24x16xf32>
// CHECK: "chlo.ragged_dot"(%[[ROWS]], %[[WEIGHTS]], %arg2) {{.*}} (tensor<32x24xf32>, tensor<5x24x16xf32>, tensor<5xi32>) -> tensor<32x16xf32>
func.func public @main(%a: tensor<27x17xf32>, %b: tensor<5x17x13xf32>, %s: tensor<5xi32>) -> tensor<27x13xf32> {
  %0 = "chlo.ragged_dot"(%a, %b, %s) <{precision_config = [#chlo<precision DEFAULT>, #chlo<precision DEFAULT>], ragged_dot_dimension_numbers = #chlo.ragged_dot<lhs_contracting_dimensions = [1], rhs_contracting_dimensions = [1], lhs_ragged_dimensions = [0], rhs_group_dimensions = [0]>}> : (tensor<27x17xf32>, tensor<5x17x13xf32>, tensor<5xi32>) -> tensor<27x13xf32>
  return %0 : tensor<27x13xf32>
}
