// RUN: stablehlo-alpa-opt %s -alpa-merge-operators | FileCheck %s

// The gradient of a bias is much smaller than what it is the sum of, and would
// be reduced at once, were it not added up over the turns: then the loop's sum
// is. Slices that are put together are sums as well.
// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while{{.*}}alpa.partial_edges = array<i64: 1>
// CHECK: %[[FIRST:.*]] = stablehlo.reduce
// CHECK: %[[SECOND:.*]] = stablehlo.reduce
// CHECK: %[[BOTH:.*]] = stablehlo.concatenate %[[FIRST]], %[[SECOND]]{{.*}}alpa.role = "leader"
// CHECK: stablehlo.add %{{.*}}, %[[BOTH]] {alpa.role = "leader"}
func.func @main(%x: tensor<512x32xf32>) -> tensor<64xf32> {
  %n = stablehlo.constant dense<8> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %i = stablehlo.constant dense<0> : tensor<i32>
  %zero = stablehlo.constant dense<0.000000e+00> : tensor<f32>
  %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<64xf32>
  %0:2 = stablehlo.while(%c = %i, %sum = %zeros) : tensor<i32>, tensor<64xf32>
    cond {
      %1 = stablehlo.compare LT, %c, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %1 : tensor<i1>
    } do {
      %1 = stablehlo.add %c, %one : tensor<i32>
      %2 = stablehlo.tanh %x : tensor<512x32xf32>
      %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<512x32xf32>, tensor<f32>) -> tensor<32xf32>
      %4 = stablehlo.exponential %x : tensor<512x32xf32>
      %5 = stablehlo.reduce(%4 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<512x32xf32>, tensor<f32>) -> tensor<32xf32>
      %6 = stablehlo.concatenate %3, %5, dim = 0 : (tensor<32xf32>, tensor<32xf32>) -> tensor<64xf32>
      %7 = stablehlo.add %sum, %6 : tensor<64xf32>
      stablehlo.return %1, %7 : tensor<i32>, tensor<64xf32>
    }
  return %0#1 : tensor<64xf32>
}
