// RUN: stablehlo-alpa-opt %s --alpa-split-micro-batches=micro-batches=2 -split-input-file -verify-diagnostics | FileCheck %s

// An optimizer may multiply sums of gradients, however much work that is beside a small batch: only
// the next state is made from it.

// CHECK: func.func @main(%{{.+}}: tensor<4x4xf32> {{.*}}, %[[X:.+]]: tensor<8x4xf32> {alpa.batch = 1 : i64
// CHECK: %[[SUM:.+]] = alpa.accumulate {{.*}} : tensor<4x4xf32>
// CHECK: %[[SQUARE:.+]] = stablehlo.dot_general %[[SUM]], %[[SUM]]{{.*}}alpa.results = [#alpa.sharding<RR>]
// CHECK: stablehlo.dot_general %[[SQUARE]], %[[SQUARE]]
// expected-remark @below {{2 micro-batches: cut along dimension 0: argument 1}}
func.func @main(%w: tensor<4x4xf32> {alpa.alias = 0 : i64}, %x: tensor<8x4xf32>) -> (tensor<4x4xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %loss = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %0, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %1 = stablehlo.dot_general %g, %g, contracting_dims = [1] x [1] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %2 = stablehlo.dot_general %1, %1, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %3 = stablehlo.dot_general %2, %2, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %4 = stablehlo.dot_general %3, %3, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %5 = stablehlo.dot_general %4, %4, contracting_dims = [1] x [0] : (tensor<4x4xf32>, tensor<4x4xf32>) -> tensor<4x4xf32>
  %n = stablehlo.subtract %w, %5 : tensor<4x4xf32>
  return %n, %loss : tensor<4x4xf32>, tensor<f32>
}

// -----

// Where the loss is made from what is behind a sum, nothing is gained by micro-batches.
func.func @main(%w: tensor<257x257xf32> {alpa.alias = 0 : i64}, %x: tensor<2x257xf32>) -> (tensor<257x257xf32>, tensor<f32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %x, %x, contracting_dims = [0] x [0] : (tensor<2x257xf32>, tensor<2x257xf32>) -> tensor<257x257xf32>
  %t = stablehlo.tanh %0 : tensor<257x257xf32>
  // expected-error @unknown {{'jit(step)/scores' cannot run once per micro-batch: what it uses comes from}}
  %1 = stablehlo.dot_general %t, %w, contracting_dims = [1] x [0] : (tensor<257x257xf32>, tensor<257x257xf32>) -> tensor<257x257xf32> loc("jit(step)/scores")
  %2 = stablehlo.dot_general %1, %1, contracting_dims = [1] x [0] : (tensor<257x257xf32>, tensor<257x257xf32>) -> tensor<257x257xf32>
  %loss = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<257x257xf32>, tensor<f32>) -> tensor<f32>
  return %1, %loss : tensor<257x257xf32>, tensor<f32>
}
