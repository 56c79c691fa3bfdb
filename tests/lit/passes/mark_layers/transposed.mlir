// RUN: stablehlo-alpa-opt %s --alpa-mark-layers=micro-batches=4 | FileCheck %s

// A linear function that is transposed, and was not differentiated, runs forward.

// CHECK: stablehlo.tanh {{.*}}{alpa.layer = 0 : i64, alpa.phase = 0 : i64}
// CHECK: stablehlo.dot_general {{.*}}{alpa.layer = 0 : i64, alpa.phase = 0 : i64}
// CHECK: stablehlo.cosine {{.*}}{alpa.layer = 1 : i64, alpa.phase = 0 : i64}
func.func @main(%w: tensor<16x16xf32>, %x: tensor<2x16xf32> {alpa.batch = 1 : i64}, %n: tensor<ui32> {alpa.micro_batch = 0 : i64}) -> tensor<2x16xf32> {
  %0 = stablehlo.tanh %x : tensor<2x16xf32> loc("jit(step)/alpa_layer_0/tanh")
  %1 = stablehlo.dot_general %0, %w, contracting_dims = [1] x [1] : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32> loc("jit(step)/alpa_layer_0/transpose()/dot_general")
  %2 = stablehlo.cosine %1 : tensor<2x16xf32> loc("jit(step)/alpa_layer_1/cos")
  %3 = alpa.accumulate %2 : tensor<2x16xf32>
  return %3 : tensor<2x16xf32>
}
