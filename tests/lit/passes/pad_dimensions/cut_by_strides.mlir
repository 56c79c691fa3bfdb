// RUN: stablehlo-alpa-opt %s --alpa-pad-dimensions=multiple=4 2>/dev/null | FileCheck %s

// One element of each group, beginning with the second group; and back between those of the others.
// CHECK-LABEL: func.func @main
// CHECK: %[[EACH:.*]] = stablehlo.slice %arg0 [1:16:2] : (tensor<16xf32>) -> tensor<8xf32>
// CHECK: %[[MOVED:.*]] = stablehlo.pad %[[EACH]], %{{.*}}, low = [-1], high = [1], interior = [0]
// CHECK: %[[E:.*]] = stablehlo.exponential %[[MOVED]] : tensor<8xf32>
// CHECK: %[[Z:.*]] = stablehlo.select %{{.*}}, %[[E]], %{{.*}} : tensor<8xi1>, tensor<8xf32>
// CHECK: %[[BACK:.*]] = stablehlo.pad %[[Z]], %{{.*}}, low = [1], high = [-1], interior = [0]
// CHECK: %[[AGAIN:.*]] = stablehlo.pad %[[BACK]], %{{.*}}, low = [1], high = [0], interior = [1] : (tensor<8xf32>, tensor<f32>) -> tensor<16xf32>
// CHECK: return %[[AGAIN]]
func.func @main(%x: tensor<16xf32>) -> tensor<16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.slice %x [3:16:2] : (tensor<16xf32>) -> tensor<7xf32>
  %1 = stablehlo.exponential %0 : tensor<7xf32>
  %2 = stablehlo.pad %1, %zero, low = [3], high = [0], interior = [1] : (tensor<7xf32>, tensor<f32>) -> tensor<16xf32>
  return %2 : tensor<16xf32>
}
