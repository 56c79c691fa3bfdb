// RUN: stablehlo-alpa-opt %s --alpa-print-materialization -o /dev/null 2>&1 | FileCheck %s

// To add what is scattered into zeros is to scatter it into the other summand: that one is stored, and
// the sum is written over it. A column for what lies outside changes nothing.

// CHECK: remark: result 0 lives from 5 to 6
// CHECK-NEXT: %exp = stablehlo.exponential
// CHECK: remark: result 0 lives from 7 to 7
// CHECK-NEXT: %sum = stablehlo.add
// CHECK-NOT: remark: result

func.func @main(%x: tensor<8x16xf32>, %i: tensor<8x1xi32>, %u: tensor<8xf32>) -> tensor<8x16xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %exp = stablehlo.exponential %x : tensor<8x16xf32>
  %zeros = stablehlo.broadcast_in_dim %zero, dims = [] : (tensor<f32>) -> tensor<8x16xf32>
  %padded = stablehlo.pad %zeros, %zero, low = [0, 0], high = [0, 1], interior = [0, 0] : (tensor<8x16xf32>, tensor<f32>) -> tensor<8x17xf32>
  %scattered = "stablehlo.scatter"(%padded, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>}> ({
  ^bb0(%l: tensor<f32>, %r: tensor<f32>):
    %0 = stablehlo.add %l, %r : tensor<f32>
    stablehlo.return %0 : tensor<f32>
  }) : (tensor<8x17xf32>, tensor<8x1xi32>, tensor<8xf32>) -> tensor<8x17xf32>
  %gradient = stablehlo.slice %scattered [0:8, 0:16] : (tensor<8x17xf32>) -> tensor<8x16xf32>
  %sum = stablehlo.add %exp, %gradient : tensor<8x16xf32>
  return %sum : tensor<8x16xf32>
}
