// RUN: stablehlo-alpa-opt %s --alpa-pad-dimensions=multiple=4 | FileCheck %s

// What is behind the elements of the program is neutral in a reduction along it; nothing is cut, for
// what is left after it has the shape that it had.
// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]] = stablehlo.dot_general {{.*}} -> tensor<8x8xf32>
// CHECK: stablehlo.constant dense<0xFF800000> : tensor<8x8xf32>
// CHECK: %[[LOW:.*]] = stablehlo.select %{{.*}}, %[[P]], %{{.*}} : tensor<8x8xi1>, tensor<8x8xf32>
// CHECK: stablehlo.reduce(%[[LOW]] init: %{{.*}}) applies stablehlo.maximum across dimensions = [1] : (tensor<8x8xf32>, tensor<f32>) -> tensor<8xf32>
// CHECK-NOT: stablehlo.slice
// CHECK: return
func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x5xf32>) -> tensor<8xf32> {
  %low = stablehlo.constant dense<0xFF800000> : tensor<f32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x5xf32>) -> tensor<8x5xf32>
  %1 = stablehlo.reduce(%0 init: %low) applies stablehlo.maximum across dimensions = [1] : (tensor<8x5xf32>, tensor<f32>) -> tensor<8xf32>
  return %1 : tensor<8xf32>
}
