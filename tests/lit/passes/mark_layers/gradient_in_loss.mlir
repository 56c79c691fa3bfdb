// RUN: stablehlo-alpa-opt %s --alpa-mark-layers=micro-batches=4 | FileCheck %s

// A loss made from a gradient: what that is made from runs forward.

// CHECK: stablehlo.tanh {{.*}}{alpa.layer = 0 : i64, alpa.phase = 0 : i64}
// CHECK: stablehlo.cosine {{.*}}{alpa.layer = 0 : i64, alpa.phase = 0 : i64}
// CHECK: stablehlo.dot_general {{.*}}{alpa.layer = 1 : i64, alpa.phase = 0 : i64}
// CHECK: stablehlo.sine {{.*}}{alpa.layer = 1 : i64, alpa.phase = 1 : i64}
// CHECK: stablehlo.dot_general {{.*}}{alpa.layer = 0 : i64, alpa.phase = 1 : i64}
func.func @main(%w: tensor<16x16xf32>, %x: tensor<2x16xf32> {alpa.batch = 1 : i64}, %n: tensor<ui32> {alpa.micro_batch = 0 : i64}) -> tensor<16x16xf32> {
  %0 = stablehlo.tanh %x : tensor<2x16xf32> loc("jit(step)/jvp(alpa_layer_0)/jvp(critic)/tanh")
  %1 = stablehlo.cosine %0 : tensor<2x16xf32> loc("jit(step)/jvp(alpa_layer_0)/transpose(jvp(critic))/cos")
  %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] : (tensor<2x16xf32>, tensor<16x16xf32>) -> tensor<2x16xf32> loc("jit(step)/jvp(alpa_layer_1)/dot_general")
  %3 = stablehlo.sine %2 : tensor<2x16xf32> loc("jit(step)/transpose(jvp(alpa_layer_1))/sin")
  %4 = stablehlo.dot_general %0, %3, contracting_dims = [0] x [0] : (tensor<2x16xf32>, tensor<2x16xf32>) -> tensor<16x16xf32> loc("jit(step)/transpose(jvp(alpa_layer_0))/jvp(critic)/dot_general")
  %5 = alpa.accumulate %4 : tensor<16x16xf32>
  return %5 : tensor<16x16xf32>
}
