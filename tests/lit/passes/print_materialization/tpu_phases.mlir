// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s

// Scores of 16 bits that are summed up where they are made are not in memory, whether a strategy makes them whole or has their sum resolved. What the backward phase reads goes from one program to another in the 16 bits that it has.

// CHECK-NOT: %inside = stablehlo.dot_general
// CHECK: remark: result 0 lives from 1 to 11
// CHECK-NEXT: %sums = stablehlo.reduce
// CHECK: remark: result 0 lives from 6 to 10{{$}}
// CHECK-NEXT: %kept = stablehlo.dot_general

// CHECK: remark: reads 65536 bytes, writes 0, at point 1
// CHECK: remark: reads 0 bytes, writes 512, at point 5
// CHECK: remark: reads 65536 bytes, writes 32768, at point 6

func.func @main(%q: tensor<128x128xbf16>, %k: tensor<128x128xbf16>) -> (tensor<128xf32>, tensor<128xf32>, tensor<128xf32>) {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %inside = stablehlo.dot_general %q, %k, contracting_dims = [1] x [1] {alpa.phase = 0 : i64} : (tensor<128x128xbf16>, tensor<128x128xbf16>) -> tensor<128x128xbf16>
  %resolved = alpa.resolve %inside : tensor<128x128xbf16>
  %wide = stablehlo.convert %resolved {alpa.phase = 0 : i64} : (tensor<128x128xbf16>) -> tensor<128x128xf32>
  %powers = stablehlo.exponential %wide {alpa.phase = 0 : i64} : tensor<128x128xf32>
  %sums = stablehlo.reduce(%powers init: %zero) applies stablehlo.add across dimensions = [1] {alpa.phase = 0 : i64} : (tensor<128x128xf32>, tensor<f32>) -> tensor<128xf32>
  %kept = stablehlo.dot_general %k, %q, contracting_dims = [1] x [1] {alpa.phase = 0 : i64} : (tensor<128x128xbf16>, tensor<128x128xbf16>) -> tensor<128x128xbf16>
  %wide_kept = stablehlo.convert %kept {alpa.phase = 0 : i64} : (tensor<128x128xbf16>) -> tensor<128x128xf32>
  %sums_kept = stablehlo.reduce(%wide_kept init: %zero) applies stablehlo.add across dimensions = [1] {alpa.phase = 0 : i64} : (tensor<128x128xf32>, tensor<f32>) -> tensor<128xf32>
  %again = stablehlo.negate %wide_kept {alpa.phase = 1 : i64} : tensor<128x128xf32>
  %gradient = stablehlo.reduce(%again init: %zero) applies stablehlo.add across dimensions = [0] {alpa.phase = 1 : i64} : (tensor<128x128xf32>, tensor<f32>) -> tensor<128xf32>
  return %sums, %sums_kept, %gradient : tensor<128xf32>, tensor<128xf32>, tensor<128xf32>
}
