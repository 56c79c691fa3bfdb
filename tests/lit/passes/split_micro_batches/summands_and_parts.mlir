// RUN: stablehlo-alpa-opt %s --alpa-split-micro-batches=micro-batches=2 | FileCheck %s --check-prefix=TIME
// RUN: stablehlo-alpa-opt %s --alpa-layers-pipeline=micro-batches=2 | FileCheck %s

// The batch is cut along dimension 0; what is summed over it is a summand of each micro-batch and
// added up, what has a row per example is put together again, and what uses either runs behind.

// TIME: alpa.mesh = #alpa.mesh<["time"=2]>
// TIME: func.func @main(%[[W:.+]]: tensor<4x4xf32> {alpa.input = 0 : i64, alpa.sharding = #alpa.sharding<RR>}, %[[X:.+]]: tensor<8x4xf32> {alpa.batch = 1 : i64, alpa.sharding = #alpa.sharding<S0R>}, %{{.+}}: tensor<ui32> {alpa.micro_batch = 0 : i64, alpa.sharding = #alpa.sharding<>})
// TIME: stablehlo.dot_general %[[X]], %[[W]]{{.*}}alpa.results = [#alpa.sharding<S0R>]
// TIME: alpa.accumulate {{.*}}{alpa.operands = [#alpa.sharding<S0R>], alpa.results = [#alpa.sharding<RR>]} : tensor<8x4xf32>
// TIME: stablehlo.reduce{{.*}}alpa.results = [#alpa.sharding<P0>]
// TIME: alpa.accumulate {{.*}}{alpa.operands = [#alpa.sharding<P0>], alpa.results = [#alpa.sharding<>]} : tensor<f32>
// TIME: stablehlo.subtract {{.*}}alpa.results = [#alpa.sharding<RR>]

// CHECK: func.func @main(%[[W:.+]]: tensor<4x4xf32> {alpa.input = 0 : i64}, %[[X:.+]]: tensor<4x4xf32> {alpa.batch = 1 : i64}, %[[N:.+]]: tensor<ui32> {alpa.micro_batch = 0 : i64})
// CHECK: %[[Y:.+]] = stablehlo.dot_general %[[X]], %[[W]]{{.*}}alpa.phase = 0
// CHECK: %[[ALL:.+]] = alpa.collect %[[Y]] at %[[N]] along 0 {{.*}}: tensor<4x4xf32>, tensor<ui32> to tensor<8x4xf32>
// CHECK: %[[OWN:.+]] = stablehlo.reduce(%[[Y]]
// CHECK: %[[LOSS:.+]] = alpa.accumulate %[[OWN]]
// CHECK: %[[G:.+]] = stablehlo.dot_general %[[X]], %[[Y]]
// CHECK: %[[SUM:.+]] = alpa.accumulate %[[G]]
// CHECK: %[[NEW:.+]] = stablehlo.subtract %[[W]], %[[SUM]] {alpa.phase = 2 : i64}
// CHECK: return %[[LOSS]], %[[ALL]], %[[NEW]]
func.func @main(%w: tensor<4x4xf32>, %x: tensor<8x4xf32>) -> (tensor<f32>, tensor<8x4xf32>, tensor<4x4xf32>) {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x4xf32>, tensor<4x4xf32>) -> tensor<8x4xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %loss = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0, 1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<f32>
  %g = stablehlo.dot_general %x, %0, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %n = stablehlo.subtract %w, %g : tensor<4x4xf32>
  return %loss, %0, %n : tensor<f32>, tensor<8x4xf32>, tensor<4x4xf32>
}
