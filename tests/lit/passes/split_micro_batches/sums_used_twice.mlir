// RUN: stablehlo-alpa-opt %s --alpa-split-micro-batches=micro-batches=2 -split-input-file | FileCheck %s

// An optimizer uses a gradient scaled and squared: the gradient is added up, once, and scaled
// behind the micro-batches.

// CHECK-LABEL: @adam
// CHECK: stablehlo.dot_general
// CHECK: %[[G:.+]] = stablehlo.dot_general
// CHECK: %[[SUM:.+]] = alpa.accumulate %[[G]]
// CHECK-NOT: alpa.accumulate
// CHECK: stablehlo.multiply %[[SUM]], %{{.+}} {alpa.operands = [#alpa.sharding<RR>, #alpa.sharding<RR>]
// CHECK: stablehlo.multiply %[[SUM]], %[[SUM]]
// CHECK-NOT: alpa.accumulate
func.func @adam(%w: tensor<4x4xf32> {alpa.alias = 0 : i64}, %x: tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<4x4xf32>) {
  %c = stablehlo.constant dense<0.1> : tensor<4x4xf32>
  %y = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %g = stablehlo.dot_general %x, %y, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %0 = stablehlo.multiply %g, %c : tensor<4x4xf32>
  %1 = stablehlo.add %0, %w : tensor<4x4xf32>
  %2 = stablehlo.multiply %g, %g : tensor<4x4xf32>
  return %1, %2 : tensor<4x4xf32>, tensor<4x4xf32>
}

// -----

// What a sum is made smaller or wider by is done to its summands: less is added up, or closer to
// the sum over the whole batch.

// CHECK-LABEL: @smaller
// CHECK: %[[SHARE:.+]] = stablehlo.reduce
// CHECK: alpa.accumulate %[[SHARE]] {{.*}} : tensor<4xf32>
// CHECK: %[[WIDE:.+]] = stablehlo.convert
// CHECK: alpa.accumulate %[[WIDE]] {{.*}} : tensor<4x4xf64>
func.func @smaller(%w: tensor<4xf32> {alpa.alias = 0 : i64}, %x: tensor<8x4xf32>) -> (tensor<4xf32>, tensor<4x4xf64>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %g = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %0 = stablehlo.reduce(%g init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<4x4xf32>, tensor<f32>) -> tensor<4xf32>
  %h = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %1 = stablehlo.convert %h : (tensor<4x4xf32>) -> tensor<4x4xf64>
  return %0, %1 : tensor<4xf32>, tensor<4x4xf64>
}
