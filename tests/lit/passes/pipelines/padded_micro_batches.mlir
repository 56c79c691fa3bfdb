// RUN: stablehlo-alpa-opt %s --alpa-layers-pipeline="batch=1 micro-batches=2 pad-to=4" | FileCheck %s

// Sizes are padded that a micro-batch has, not the whole batch: 20 rows are two times 10, which 4
// devices do not divide. The pads and cuts are of the micro-batches' work.

// CHECK: func.func @main(%[[W:.+]]: tensor<8x8xf32> {{.*}}, %[[X:.+]]: tensor<10x8xf32> {alpa.batch = 1 : i64}
// CHECK: %[[P:.+]] = stablehlo.pad %[[X]], %{{.+}} {{.*}} -> tensor<12x8xf32>
// CHECK: %[[Y:.+]] = stablehlo.dot_general %[[P]], %[[W]], {{.*}}alpa.phase = 0 : i64{{.*}} -> tensor<12x8xf32>
// CHECK-NOT: alpa.phase = 2
// CHECK: alpa.accumulate
func.func @main(%w: tensor<8x8xf32>, %x: tensor<20x8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<20x8xf32>, tensor<8x8xf32>) -> tensor<20x8xf32> loc("jit(step)/jvp(alpa_layer_0)/dot_general")
  %1 = stablehlo.reduce(%0 init: %zero) applies stablehlo.add across dimensions = [0] : (tensor<20x8xf32>, tensor<f32>) -> tensor<8xf32> loc("jit(step)/jvp(alpa_layer_0)/reduce_sum")
  return %1 : tensor<8xf32>
}
