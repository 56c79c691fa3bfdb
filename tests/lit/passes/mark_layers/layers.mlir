// RUN: stablehlo-alpa-opt %s --alpa-mark-layers="batch=2 micro-batches=4" | FileCheck %s

// Scopes become layers and phases; what leaves the differentiated function becomes a mean over the
// micro-batches. Operators on constants alone belong to no layer.

// CHECK: func.func @main{{.*}}attributes {alpa.micro_batches = 4 : i64}
// CHECK: %[[H:.+]] = stablehlo.dot_general %arg2, %arg0{{.*}}{alpa.layer = 0 : i64, alpa.phase = 0 : i64}
// CHECK: %[[Y:.+]] = stablehlo.dot_general %[[H]], %arg1{{.*}}{alpa.layer = 1 : i64, alpa.phase = 0 : i64}
// CHECK: %[[LOSS:.+]] = stablehlo.reduce(%[[Y]] {{.*}}{alpa.layer = 1 : i64, alpa.phase = 0 : i64}
// CHECK: stablehlo.broadcast_in_dim %{{[a-z0-9_]+}}, dims = [] :
// CHECK: %[[G1:.+]] = stablehlo.dot_general %[[H]]{{.*}}{alpa.layer = 1 : i64, alpa.phase = 1 : i64}
// CHECK: %[[G0:.+]] = stablehlo.dot_general %arg2{{.*}}{alpa.layer = 0 : i64, alpa.phase = 1 : i64}
// CHECK-NOT: optimization_barrier
// CHECK: %[[S:.+]] = alpa.accumulate %[[LOSS]] {alpa.layer = 1 : i64, alpa.phase = 0 : i64}
// CHECK: %[[C:.+]] = stablehlo.constant {{.*}}dense<4.000000e+00>
// CHECK: %[[MEAN:.+]] = stablehlo.divide %[[S]], %[[C]] {alpa.phase = 2 : i64}
// CHECK: alpa.accumulate %[[G0]] {alpa.layer = 0 : i64, alpa.phase = 1 : i64}
// CHECK: alpa.accumulate %[[G1]] {alpa.layer = 1 : i64, alpa.phase = 1 : i64}
// CHECK: stablehlo.subtract %arg0{{.*}}{alpa.phase = 2 : i64}
// CHECK: return %[[MEAN]]
func.func @main(%w0: tensor<16x16xf32>, %w1: tensor<16x16xf32>, %x: tensor<8x16xf32>) -> (tensor<f32>, tensor<16x16xf32>, tensor<16x16xf32>) {
  %0 = stablehlo.dot_general %x, %w0, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32> loc("jit(step)/jvp(alpa_layer_0)/dot_general")
  %1 = stablehlo.dot_general %0, %w1, contracting_dims = [1] x [0] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32> loc("jit(step)/jvp(alpa_layer_1)/dot_general")
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %loss = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x16xf32>, tensor<f32>) -> tensor<f32> loc("jit(step)/jvp(alpa_layer_1)/reduce_sum")
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %b = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<8x16xf32> loc("jit(step)/transpose(jvp(alpa_layer_1))/broadcast")
  %g1 = stablehlo.dot_general %0, %b, contracting_dims = [0] x [0] : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32> loc("jit(step)/transpose(jvp(alpa_layer_1))/dot_general")
  %c0 = stablehlo.dot_general %b, %w1, contracting_dims = [1] x [1] : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32> loc("jit(step)/transpose(jvp(alpa_layer_1))/dot_general")
  %g0 = stablehlo.dot_general %x, %c0, contracting_dims = [0] x [0] : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32> loc("jit(step)/transpose(jvp(alpa_layer_0))/dot_general")
  %m:3 = stablehlo.optimization_barrier %loss, %g0, %g1 : tensor<f32>, tensor<16x16xf32>, tensor<16x16xf32> loc("jit(step)/alpa_gradients/optimization_barrier")
  %n0 = stablehlo.subtract %w0, %m#1 : tensor<16x16xf32>
  %n1 = stablehlo.subtract %w1, %m#2 : tensor<16x16xf32>
  return %m#0, %n0, %n1 : tensor<f32>, tensor<16x16xf32>, tensor<16x16xf32>
}
