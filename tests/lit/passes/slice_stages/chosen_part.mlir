// RUN: stablehlo-alpa-opt %s -split-input-file --alpa-slice-stages=stages=0,1 | FileCheck %s

// A part of a parameter crosses to the stage that needs it.

// CHECK-LABEL: module @stage_0
// CHECK: dynamic_slice
// CHECK-LABEL: module @stage_1
// CHECK-NOT: dynamic_slice
func.func @main(%w: tensor<64x64xf32>, %x: tensor<64x64xf32> {alpa.batch = 1 : i64}, %row: tensor<i32>) -> tensor<64x64xf32> attributes {alpa.micro_batches = 2 : i64} {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.multiply %w, %x {alpa.layer = 0 : i64, alpa.phase = 0 : i64} : tensor<64x64xf32>
  %1 = stablehlo.dynamic_slice %w, %row, %zero, sizes = [32, 64] {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : (tensor<64x64xf32>, tensor<i32>, tensor<i32>) -> tensor<32x64xf32>
  %2 = stablehlo.concatenate %1, %1, dim = 0 {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>
  %3 = stablehlo.multiply %2, %0 {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : tensor<64x64xf32>
  %4 = alpa.accumulate %3 {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : tensor<64x64xf32>
  return %4 : tensor<64x64xf32>
}

// -----

// Which part, that stage says: the first would wait for it, and it for the first.

// CHECK-LABEL: module @stage_0
// CHECK-NOT: dynamic_slice
// CHECK-LABEL: module @stage_1
// CHECK: dynamic_slice
func.func @main(%w: tensor<64x64xf32>, %x: tensor<64x64xf32> {alpa.batch = 1 : i64}, %y: tensor<2xi32> {alpa.batch = 1 : i64}) -> tensor<64x64xf32> attributes {alpa.micro_batches = 2 : i64} {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %0 = stablehlo.multiply %w, %x {alpa.layer = 0 : i64, alpa.phase = 0 : i64} : tensor<64x64xf32>
  %row = stablehlo.reduce(%y init: %zero) applies stablehlo.add across dimensions = [0] {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : (tensor<2xi32>, tensor<i32>) -> tensor<i32>
  %1 = stablehlo.dynamic_slice %w, %row, %zero, sizes = [32, 64] {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : (tensor<64x64xf32>, tensor<i32>, tensor<i32>) -> tensor<32x64xf32>
  %2 = stablehlo.concatenate %1, %1, dim = 0 {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : (tensor<32x64xf32>, tensor<32x64xf32>) -> tensor<64x64xf32>
  %3 = stablehlo.multiply %2, %0 {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : tensor<64x64xf32>
  %4 = alpa.accumulate %3 {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : tensor<64x64xf32>
  return %4 : tensor<64x64xf32>
}
