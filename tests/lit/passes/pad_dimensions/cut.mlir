// RUN: stablehlo-alpa-opt %s --alpa-pad-dimensions=multiple=4 | FileCheck %s

// What depends on the size in a way that nothing is known of sees the values as they were.
// CHECK-LABEL: func.func @main
// CHECK: %[[P:.*]] = stablehlo.dot_general {{.*}} -> tensor<16x8xf32>
// CHECK: %[[CUT:.*]] = stablehlo.slice %[[P]] [0:16, 0:5] : (tensor<16x8xf32>) -> tensor<16x5xf32>
// CHECK: "stablehlo.sort"(%[[CUT]])
func.func @main(%x: tensor<16x8xf32>, %w: tensor<8x5xf32>) -> tensor<16x5xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8x5xf32>) -> tensor<16x5xf32>
  %1 = "stablehlo.sort"(%0) <{dimension = 1 : i64}> ({
  ^bb0(%a: tensor<f32>, %b: tensor<f32>):
    %2 = stablehlo.compare LT, %a, %b : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  }) : (tensor<16x5xf32>) -> tensor<16x5xf32>
  return %1 : tensor<16x5xf32>
}
