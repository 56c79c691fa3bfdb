// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics -pass-pipeline='builtin.module(alpa-merge-operators,alpa-choose-strategies{mesh=x:2 solution=0,0,0,0})'

// What could be split and is not, is named with what it costs every device.
func.func @main(%x: tensor<128x128xf32>, %w: tensor<128x128xf32>) -> tensor<128x128xf32> {
  // expected-remark @below {{'stablehlo.dot_general' can be split and is not, for what that would move or what is prescribed: every device does 4194304 FLOPs, reads and writes 196608 bytes, 100.0 % and 100.0 % of those of the step}}
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  return %0 : tensor<128x128xf32>
}

// -----

// Nothing is said of what takes less than it takes to start it.
func.func @main(%x: tensor<16x16xf32>, %w: tensor<16x16xf32>) -> tensor<16x16xf32> {
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<16x16xf32>, tensor<16x16xf32>) -> tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}
