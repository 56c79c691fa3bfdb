// RUN: stablehlo-alpa-opt %s "-alpa-split-micro-batches=micro-batches=2" | FileCheck %s

// What is put side by side and compared is so in each micro-batch: half of both. Noise of the joined shape, which has no order of its
// own, is made for all and cut.

// CHECK: func.func @main(%[[A:.+]]: tensor<8x4xf32> {alpa.batch = 0 : i64, alpa.sharding = #alpa.sharding<S0R>}, %[[B:.+]]: tensor<8x4xf32> {alpa.batch = 1 : i64, alpa.sharding = #alpa.sharding<S0R>}
// CHECK: %[[A_PARTS:.+]] = stablehlo.reshape %[[A]] {{.*}} -> tensor<2x4x4xf32>
// CHECK: %[[B_PARTS:.+]] = stablehlo.reshape %[[B]] {{.*}} -> tensor<2x4x4xf32>
// CHECK: stablehlo.concatenate %[[A_PARTS]], %[[B_PARTS]], dim = 1 {alpa.operands = [#alpa.sharding<S0RR>, #alpa.sharding<S0RR>]
// CHECK: %[[NOISE:.+]] = stablehlo.sine {{.*}}alpa.results = [#alpa.sharding<RR>]
// CHECK: stablehlo.slice %[[NOISE]] [0:8, 0:4]
// CHECK: stablehlo.slice %[[NOISE]] [8:16, 0:4]
// CHECK: stablehlo.dot_general {{.*}}alpa.results = [#alpa.sharding<S0R>]
// CHECK: stablehlo.slice %{{.+}} [0:2, 0:4, 0:4]
// CHECK: stablehlo.slice %{{.+}} [0:2, 4:8, 0:4]
// CHECK: stablehlo.subtract {{.*}}alpa.results = [#alpa.sharding<S0R>]
func.func @main(%a: tensor<8x4xf32>, %b: tensor<8x4xf32>, %w: tensor<4x4xf32>, %noise: tensor<16x4xf32>) -> tensor<8x4xf32> {
  %0 = stablehlo.concatenate %a, %b, dim = 0 : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<16x4xf32>
  %1 = stablehlo.sine %noise : tensor<16x4xf32>
  %2 = stablehlo.add %0, %1 : tensor<16x4xf32>
  %3 = stablehlo.dot_general %2, %w, contracting_dims = [1] x [0] : (tensor<16x4xf32>, tensor<4x4xf32>) -> tensor<16x4xf32>
  %4 = stablehlo.slice %3 [0:8, 0:4] : (tensor<16x4xf32>) -> tensor<8x4xf32>
  %5 = stablehlo.slice %3 [8:16, 0:4] : (tensor<16x4xf32>) -> tensor<8x4xf32>
  %6 = stablehlo.subtract %4, %5 : tensor<8x4xf32>
  return %6 : tensor<8x4xf32>
}
