// RUN: stablehlo-alpa-opt %s --alpa-mark-layers=micro-batches=4 | FileCheck %s

// Scopes become layers and phases; a join belongs where its value is made, what uses joins runs
// once per step. Operators on constants alone belong to no layer.

// CHECK: func.func @main{{.*}}attributes {alpa.micro_batches = 4 : i64}
// CHECK: %[[H:.+]] = stablehlo.dot_general %arg2, %arg0{{.*}}{alpa.layer = 0 : i64, alpa.phase = 0 : i64}
// CHECK: %[[Y:.+]] = stablehlo.dot_general %[[H]], %arg1{{.*}}{alpa.layer = 1 : i64, alpa.phase = 0 : i64}
// CHECK: %[[LOSS:.+]] = stablehlo.reduce(%[[Y]] {{.*}}{alpa.layer = 1 : i64, alpa.phase = 0 : i64}
// CHECK: stablehlo.broadcast_in_dim %{{[a-z0-9_]+}}, dims = [] :
// CHECK: %[[G1:.+]] = stablehlo.dot_general %[[H]]{{.*}}{alpa.layer = 1 : i64, alpa.phase = 1 : i64}
// CHECK: %[[G0:.+]] = stablehlo.dot_general %arg2{{.*}}{alpa.layer = 0 : i64, alpa.phase = 1 : i64}
// CHECK: %[[SUM:.+]] = alpa.accumulate %[[LOSS]] {alpa.layer = 1 : i64, alpa.phase = 0 : i64}
// CHECK: alpa.accumulate %[[G0]] {alpa.layer = 0 : i64, alpa.phase = 1 : i64}
// CHECK: alpa.accumulate %[[G1]] {alpa.layer = 1 : i64, alpa.phase = 1 : i64}
// CHECK: %[[ALL:.+]] = alpa.collect %[[Y]] at %arg3 along 0 {alpa.layer = 1 : i64, alpa.phase = 0 : i64}
// CHECK: stablehlo.subtract %arg0{{.*}}{alpa.phase = 2 : i64}
// CHECK: stablehlo.subtract %arg1{{.*}}{alpa.phase = 2 : i64}
// CHECK: return %[[SUM]], {{.*}}, %[[ALL]]
func.func @main(%w0: tensor<16x16xf32>, %w1: tensor<16x16xf32>, %x: tensor<2x16xf32> {alpa.batch = 2 : i64}, %n: tensor<ui32> {alpa.micro_batch = 0 : i64}) -> (tensor<f32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<8x16xf32>) {
  %0 = stablehlo.dot_general %x, %w0, contracting_dims = [1] x [0] : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32> loc("jit(step)/jvp(alpa_layer_0)/dot_general")
  %1 = stablehlo.dot_general %0, %w1, contracting_dims = [1] x [0] : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32> loc("jit(step)/jvp(alpa_layer_1)/dot_general")
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %loss = stablehlo.reduce(%1 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<2x16xf32>, tensor<f32>) -> tensor<f32> loc("jit(step)/jvp(alpa_layer_1)/reduce_sum")
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %b = stablehlo.broadcast_in_dim %one, dims = [] : (tensor<f32>) -> tensor<2x16xf32> loc("jit(step)/transpose(jvp(alpa_layer_1))/broadcast")
  %g1 = stablehlo.dot_general %0, %b, contracting_dims = [0] x [0] : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<16x16xf32> loc("jit(step)/transpose(jvp(alpa_layer_1))/dot_general")
  %c0 = stablehlo.dot_general %b, %w1, contracting_dims = [1] x [1] : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32> loc("jit(step)/transpose(jvp(alpa_layer_1))/dot_general")
  %g0 = stablehlo.dot_general %x, %c0, contracting_dims = [0] x [0] : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<16x16xf32> loc("jit(step)/transpose(jvp(alpa_layer_0))/dot_general")
  %m0 = alpa.accumulate %loss : tensor<f32>
  %m1 = alpa.accumulate %g0 : tensor<16x16xf32>
  %m2 = alpa.accumulate %g1 : tensor<16x16xf32>
  %m3 = alpa.collect %1 at %n along 0 : tensor<2x16xf32>, tensor<ui32> to tensor<8x16xf32>
  %n0 = stablehlo.subtract %w0, %m1 : tensor<16x16xf32>
  %n1 = stablehlo.subtract %w1, %m2 : tensor<16x16xf32>
  return %m0, %n0, %n1, %m3 : tensor<f32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<8x16xf32>
}
