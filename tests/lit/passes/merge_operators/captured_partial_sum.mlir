// RUN: stablehlo-alpa-opt %s --alpa-merge-operators | FileCheck %s

// What a reducer takes from outside is the sum, not a share of it.

// CHECK: %[[DOT:.+]] = stablehlo.dot_general
// CHECK: %[[SUM:.+]] = alpa.resolve %[[DOT]]
// CHECK: stablehlo.reduce
// CHECK:   stablehlo.maximum %{{.+}}, %[[SUM]]
func.func @main(%x: tensor<64x64xf32>, %a: tensor<64xf32>, %b: tensor<64xf32>) -> tensor<64xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %t = stablehlo.dot_general %a, %b, contracting_dims = [0] x [0] : (tensor<64xf32>, tensor<64xf32>) -> tensor<f32>
  %0 = "stablehlo.reduce"(%x, %zero) <{dimensions = array<i64: 1>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %1 = stablehlo.maximum %l, %t : tensor<f32>
    %2 = stablehlo.add %1, %r : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<64x64xf32>, tensor<f32>) -> tensor<64xf32>
  return %0 : tensor<64xf32>
}
