// RUN: stablehlo-alpa-opt %s --alpa-pad-dimensions=multiple=4 --verify-diagnostics | FileCheck %s

// What slices leave of a dimension is computed in as many elements as it had: moved to the front, with
// zeros behind them where they are added up, and moved to where a concatenation has them.
// CHECK-LABEL: func.func @main
// CHECK: %[[NEXT:.*]] = stablehlo.pad %arg0, %{{.*}}, low = [-1, 0], high = [1, 0], interior = [0, 0]
// CHECK: %[[D:.*]] = stablehlo.subtract %[[NEXT]], %arg0 : tensor<8x5xf32>
// CHECK: %[[INSIDE:.*]] = stablehlo.compare LT, %{{.*}}, %{{.*}} : (tensor<8xi64>, tensor<8xi64>) -> tensor<8xi1>
// CHECK: %[[Z:.*]] = stablehlo.select %{{.*}}, %[[D]], %{{.*}} : tensor<8x5xi1>, tensor<8x5xf32>
// CHECK: %[[SUM:.*]] = stablehlo.reduce(%[[Z]] init: %{{.*}}) applies stablehlo.add across dimensions = [0]
// CHECK: %[[FIRST:.*]] = stablehlo.broadcast_in_dim %{{.*}}, dims = [0, 1] : (tensor<1x5xf32>) -> tensor<8x5xf32>
// CHECK: %[[BACK:.*]] = stablehlo.pad %[[Z]], %{{.*}}, low = [1, 0], high = [-1, 0], interior = [0, 0]
// CHECK: stablehlo.compare GE
// CHECK: %[[JOINED:.*]] = stablehlo.select %{{.*}}, %[[BACK]], %[[FIRST]]
// CHECK: return %[[SUM]], %[[JOINED]]
func.func @main(%x: tensor<8x5xf32>) -> (tensor<5xf32>, tensor<8x5xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-remark @below {{a dimension of 7 is padded to 8, as long as what it is cut from, in 5 operators}}
  %0 = stablehlo.slice %x [1:8, 0:5] : (tensor<8x5xf32>) -> tensor<7x5xf32>
  %1 = stablehlo.slice %x [0:7, 0:5] : (tensor<8x5xf32>) -> tensor<7x5xf32>
  %2 = stablehlo.subtract %0, %1 : tensor<7x5xf32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<7x5xf32>, tensor<f32>) -> tensor<5xf32>
  %4 = stablehlo.slice %x [0:1, 0:5] : (tensor<8x5xf32>) -> tensor<1x5xf32>
  %5 = stablehlo.concatenate %4, %2, dim = 0 : (tensor<1x5xf32>, tensor<7x5xf32>) -> tensor<8x5xf32>
  return %3, %5 : tensor<5xf32>, tensor<8x5xf32>
}
