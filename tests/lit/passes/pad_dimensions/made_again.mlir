// RUN: stablehlo-alpa-opt %s --alpa-pad-dimensions=multiple=4 -canonicalize | FileCheck %s

// What is made of positions, constants and rows of other values is made longer; a table is padded.

// CHECK-LABEL: func.func @main
// CHECK-DAG: %[[HALF:.+]] = stablehlo.constant dense<5.000000e-01> : tensor<8x8xf32>
// CHECK-DAG: %[[PLACES:.+]] = stablehlo.iota dim = 1 : tensor<8x8xf32>
// CHECK-DAG: %[[SCALED:.+]] = stablehlo.multiply %[[PLACES]], %[[HALF]] : tensor<8x8xf32>
// CHECK-DAG: %[[ROWS:.+]] = stablehlo.broadcast_in_dim %arg2, dims = [0] : (tensor<8xf32>) -> tensor<8x8xf32>
// CHECK-DAG: %[[MADE:.+]] = stablehlo.add %[[SCALED]], %[[ROWS]] : tensor<8x8xf32>
// CHECK-DAG: %[[TABLE:.+]] = stablehlo.pad {{.*}}high = [0, 3]{{.*}} : (tensor<8x5xf32>, tensor<f32>) -> tensor<8x8xf32>
// CHECK: %[[SUM:.+]] = stablehlo.add %{{.+}}, %[[MADE]] : tensor<8x8xf32>
// CHECK: stablehlo.multiply %[[SUM]], %{{.+}} : tensor<8x8xf32>
// CHECK-NOT: -> tensor<8x5xf32>
// CHECK: stablehlo.reduce
func.func @main(%x: tensor<8x8xf32>, %w: tensor<8x5xf32>, %row: tensor<8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %half = stablehlo.constant dense<0.5> : tensor<8x5xf32>
  %table = stablehlo.constant dense<[1.0, 2.0, 3.0, 4.0, 5.0]> : tensor<5xf32>
  %position = stablehlo.iota dim = 1 : tensor<8x5xf32>
  %scaled = stablehlo.multiply %position, %half : tensor<8x5xf32>
  %rows = stablehlo.broadcast_in_dim %row, dims = [0] : (tensor<8xf32>) -> tensor<8x5xf32>
  %columns = stablehlo.broadcast_in_dim %table, dims = [1] : (tensor<5xf32>) -> tensor<8x5xf32>
  %made = stablehlo.add %scaled, %rows : tensor<8x5xf32>
  %0 = stablehlo.dot_general %x, %w, contracting_dims = [1] x [0] : (tensor<8x8xf32>, tensor<8x5xf32>) -> tensor<8x5xf32>
  %1 = stablehlo.add %0, %made : tensor<8x5xf32>
  %2 = stablehlo.multiply %1, %columns : tensor<8x5xf32>
  %3 = stablehlo.reduce(%2 init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x5xf32>, tensor<f32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}
