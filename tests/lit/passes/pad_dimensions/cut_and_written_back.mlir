// RUN: stablehlo-alpa-opt %s --alpa-pad-dimensions=multiple=4 2>/dev/null | FileCheck %s

// What is written to known places of a dimension from which it was cut: x.at[1:15].add and a dynamic
// update at a place that is a number, held within the operand (3 is 2 at most).
// CHECK-LABEL: func.func @main
// CHECK: %[[S:.*]] = stablehlo.sine %{{.*}} : tensor<16xf32>
// CHECK: %[[AT:.*]] = stablehlo.pad %[[S]], %{{.*}}, low = [1], high = [-1], interior = [0]
// CHECK: %[[SUM:.*]] = stablehlo.add %arg0, %[[AT]] : tensor<16xf32>
// CHECK: %[[BEFORE:.*]] = stablehlo.select %{{.*}}, %arg0, %[[SUM]]
// CHECK: %[[ADDED:.*]] = stablehlo.select %{{.*}}, %[[BEFORE]], %arg0
// CHECK: %[[MOVED:.*]] = stablehlo.pad %[[S]], %{{.*}}, low = [2], high = [-2], interior = [0]
// CHECK: stablehlo.select %{{.*}}, %[[ADDED]], %[[MOVED]]
// CHECK-NOT: stablehlo.dynamic_update_slice
func.func @main(%x: tensor<16xf32>) -> tensor<16xf32> {
  %one = stablehlo.constant dense<1> : tensor<i32>
  %i = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<i32>) -> tensor<1xi32>
  %three = stablehlo.constant dense<3> : tensor<ui8>
  %0 = stablehlo.slice %x [2:16] : (tensor<16xf32>) -> tensor<14xf32>
  %1 = stablehlo.sine %0 : tensor<14xf32>
  %2 = "stablehlo.scatter"(%x, %i, %1) <{scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [0], scatter_dims_to_operand_dims = [0]>, unique_indices = true}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %3 = stablehlo.add %a, %b : tensor<f32>
    stablehlo.return %3 : tensor<f32>
  }) : (tensor<16xf32>, tensor<1xi32>, tensor<14xf32>) -> tensor<16xf32>
  %4 = stablehlo.dynamic_update_slice %2, %1, %three : (tensor<16xf32>, tensor<14xf32>, tensor<ui8>) -> tensor<16xf32>
  return %4 : tensor<16xf32>
}
