// The passes under stock mlir-opt print what they print under our own tool.
// RUN: stablehlo-alpa-opt %s -alpa-prepare-pipeline -o %t.prepared
// RUN: mlir-opt --load-dialect-plugin=%plugin --load-pass-plugin=%plugin %s -pass-pipeline='builtin.module(alpa-prepare-pipeline)' | diff %t.prepared -
// RUN: stablehlo-alpa-opt %t.prepared -pass-pipeline='builtin.module(alpa-plan-pipeline{mesh=x:2 solution=1,2,1,2})' -o %t.planned
// RUN: mlir-opt --load-dialect-plugin=%plugin --load-pass-plugin=%plugin %t.prepared -pass-pipeline='builtin.module(alpa-plan-pipeline{mesh=x:2 solution=1,2,1,2})' | diff %t.planned -
// RUN: stablehlo-alpa-opt %t.planned -alpa-spmd-pipeline -o %t.local
// RUN: mlir-opt --load-dialect-plugin=%plugin --load-pass-plugin=%plugin %t.planned -pass-pipeline='builtin.module(alpa-spmd-pipeline)' | diff %t.local -

func.func @main(%x: tensor<16x32xf32>, %w: tensor<32x64xf32>) -> tensor<16x64xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x32xf32>, tensor<32x64xf32>) -> tensor<16x64xf32>
  %1 = stablehlo.tanh %0 : tensor<16x64xf32>
  return %1 : tensor<16x64xf32>
}
