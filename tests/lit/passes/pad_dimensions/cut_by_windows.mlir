// RUN: stablehlo-alpa-opt %s --alpa-pad-dimensions="multiple=4 most-added=0.2" 2>/dev/null | FileCheck %s

// Windows without padding: as many more behind as the input has. In the gradients of a convolution they
// are input and taps, with zeros behind them.
// CHECK-LABEL: func.func @main
// CHECK: %[[Y:.*]] = stablehlo.convolution(%arg0, %arg1) {{.*}} window = {pad = {{\[\[}}0, 2]]} {{.*}} -> tensor<1x16x3xf32>
// CHECK: %[[E:.*]] = stablehlo.exponential %[[Y]] : tensor<1x16x3xf32>
// CHECK: %[[Z:.*]] = stablehlo.select %{{.*}}, %[[E]], %{{.*}} : tensor<1x16x3xi1>, tensor<1x16x3xf32>
// CHECK: %[[CUT:.*]] = stablehlo.slice %[[Z]] [0:1, 0:14, 0:3]
// CHECK: %[[DX:.*]] = stablehlo.convolution(%[[Z]], %arg1) {{.*}} window = {pad = {{\[\[}}2, 0]], reverse = [true]} {{.*}} -> tensor<1x16x3xf32>
// CHECK: %[[DK:.*]] = stablehlo.convolution(%arg0, %[[Z]]) {{.*}} window = {pad = {{\[\[}}0, 2]]} {{.*}} -> tensor<3x3x3xf32>
// CHECK: return %[[CUT]], %[[DX]], %[[DK]]
func.func @main(%x: tensor<1x16x3xf32>, %k: tensor<3x3x3xf32>) -> (tensor<1x14x3xf32>, tensor<1x16x3xf32>, tensor<3x3x3xf32>) {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x16x3xf32>, tensor<3x3x3xf32>) -> tensor<1x14x3xf32>
  %1 = stablehlo.exponential %0 : tensor<1x14x3xf32>
  %2 = stablehlo.convolution(%1, %k) dim_numbers = [b, 0, f]x[0, o, i]->[b, 0, f], window = {pad = [[2, 2]], reverse = [true]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x14x3xf32>, tensor<3x3x3xf32>) -> tensor<1x16x3xf32>
  %3 = stablehlo.convolution(%x, %1) dim_numbers = [f, 0, b]x[i, 0, o]->[0, b, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x16x3xf32>, tensor<1x14x3xf32>) -> tensor<3x3x3xf32>
  return %1, %2, %3 : tensor<1x14x3xf32>, tensor<1x16x3xf32>, tensor<3x3x3xf32>
}
