// RUN: stablehlo-alpa-opt %s -mlir-print-op-generic -o %t.generic && stablehlo-alpa-opt %t.generic -mlir-print-op-generic | diff %t.generic -
// RUN: FileCheck %s < %t.generic

// Attributes and types of a newer StableHLO pass through as they are written.
// CHECK-LABEL: sym_name = "newer"
// CHECK: hint = #stablehlo.hint<"fast", 3>
// CHECK: kind = #chlo.kind<soft>
// CHECK: !stablehlo.handle<4>
func.func @newer(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = stablehlo.tanh %x {hint = #stablehlo.hint<"fast", 3>, kind = #chlo.kind<soft>} : tensor<4xf32>
  %1 = stablehlo.custom_call @open(%0) : (tensor<4xf32>) -> tensor<4xf32>
  return %1 : tensor<4xf32>
}
func.func private @handles(!stablehlo.handle<4>) -> !stablehlo.token

// CHECK-LABEL: sym_name = "convolution"
// CHECK: dimension_numbers = #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>
func.func @convolution(%x: tensor<1x8x8x3xf32>, %k: tensor<3x3x3x16xf32>) -> tensor<1x6x6x16xf32> {
  %0 = stablehlo.convolution(%x, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f], window = {} {batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<1x8x8x3xf32>, tensor<3x3x3x16xf32>) -> tensor<1x6x6x16xf32>
  return %0 : tensor<1x6x6x16xf32>
}
