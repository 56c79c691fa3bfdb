// RUN: stablehlo-alpa-opt %s --alpa-slice-stages=stages=0,1 | FileCheck %s

// A stage gets what its layers and the updates of their parameters need. Operators on constants are
// made again in every stage; activations and their gradients cross.

// CHECK-LABEL: module @stage_0
// CHECK: func.func @main(%[[X:.+]]: tensor<8x16xf32> {alpa.batch = 2 : i64}, %[[W:.+]]: tensor<16x16xf32> {alpa.input = 0 : i64}, %[[C:.+]]: tensor<8x16xf32> {alpa.transfer = 1 : i64}) -> (tensor<8x16xf32> {alpa.transfer = 0 : i64}, tensor<16x16xf32> {alpa.output = 1 : i64})
// CHECK: %[[H:.+]] = stablehlo.dot_general %[[X]], %[[W]]
// CHECK: %[[G:.+]] = stablehlo.dot_general %[[X]], %[[C]]
// CHECK: %[[S:.+]] = alpa.accumulate %[[G]]
// CHECK: %[[NEW:.+]] = stablehlo.subtract %[[W]], %{{.+}} {alpa.phase = 2 : i64}
// CHECK: return %[[H]], %[[NEW]]

// CHECK-LABEL: module @stage_1
// CHECK: func.func @main(%[[H:.+]]: tensor<8x16xf32> {alpa.transfer = 0 : i64}, %[[W:.+]]: tensor<16x16xf32> {alpa.input = 1 : i64}) -> (tensor<8x16xf32> {alpa.transfer = 1 : i64}, tensor<f32> {alpa.output = 0 : i64}, tensor<16x16xf32> {alpa.output = 2 : i64})
module {
  func.func @main(%arg0: tensor<16x16xf32>, %arg1: tensor<16x16xf32>, %arg2: tensor<8x16xf32> {alpa.batch = 2 : i64}) -> (tensor<f32>, tensor<16x16xf32>, tensor<16x16xf32>) attributes {alpa.micro_batches = 4 : i64} {
    %0 = stablehlo.dot_general %arg2, %arg0, contracting_dims = [1] x [0] {alpa.layer = 0 : i64, alpa.phase = 0 : i64} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %1 = stablehlo.dot_general %0, %arg1, contracting_dims = [1] x [0] {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %cst = stablehlo.constant dense<0.000000e+00> : tensor<f32>
    %2 = stablehlo.reduce(%1 init: %cst) applies stablehlo.add across dimensions = [0, 1] {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : (tensor<8x16xf32>, tensor<f32>) -> tensor<f32>
    %cst_0 = stablehlo.constant dense<1.000000e+00> : tensor<f32>
    %3 = stablehlo.broadcast_in_dim %cst_0, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
    %4 = stablehlo.dot_general %0, %3, contracting_dims = [0] x [0] {alpa.layer = 1 : i64, alpa.phase = 1 : i64} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
    %5 = stablehlo.dot_general %3, %arg1, contracting_dims = [1] x [1] {alpa.layer = 1 : i64, alpa.phase = 1 : i64} : (tensor<8x16xf32>, tensor<16x16xf32>) -> tensor<8x16xf32>
    %6 = stablehlo.dot_general %arg2, %5, contracting_dims = [0] x [0] {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : (tensor<8x16xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
    %7 = alpa.accumulate %2 {alpa.layer = 1 : i64, alpa.phase = 0 : i64} : tensor<f32>
    %cst_1 = stablehlo.constant {alpa.phase = 2 : i64} dense<4.000000e+00> : tensor<f32>
    %8 = stablehlo.divide %7, %cst_1 {alpa.phase = 2 : i64} : tensor<f32>
    %9 = alpa.accumulate %6 {alpa.layer = 0 : i64, alpa.phase = 1 : i64} : tensor<16x16xf32>
    %cst_2 = stablehlo.constant {alpa.phase = 2 : i64} dense<4.000000e+00> : tensor<16x16xf32>
    %10 = stablehlo.divide %9, %cst_2 {alpa.phase = 2 : i64} : tensor<16x16xf32>
    %11 = alpa.accumulate %4 {alpa.layer = 1 : i64, alpa.phase = 1 : i64} : tensor<16x16xf32>
    %cst_3 = stablehlo.constant {alpa.phase = 2 : i64} dense<4.000000e+00> : tensor<16x16xf32>
    %12 = stablehlo.divide %11, %cst_3 {alpa.phase = 2 : i64} : tensor<16x16xf32>
    %13 = stablehlo.subtract %arg0, %10 {alpa.phase = 2 : i64} : tensor<16x16xf32>
    %14 = stablehlo.subtract %arg1, %12 {alpa.phase = 2 : i64} : tensor<16x16xf32>
    return %8, %13, %14 : tensor<f32>, tensor<16x16xf32>, tensor<16x16xf32>
  }
}

