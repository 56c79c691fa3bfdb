// RUN: stablehlo-alpa-opt %s --alpa-split-micro-batches=micro-batches=2 -split-input-file | FileCheck %s

// Rows stay as they are where a mask beside them is false, which is the
// predicate of what they have become. The most turns that a row has taken are
// those of each that goes on: a micro-batch asks its own.

// CHECK-LABEL: func.func @main
// CHECK: alpa.manual
// CHECK: stablehlo.reduce({{.*}} applies stablehlo.or
// CHECK: stablehlo.return
// CHECK: alpa.manual
// CHECK: %[[LEAST:.+]] = stablehlo.constant dense<-2147483648>
// CHECK: stablehlo.reduce({{.*}} init: %[[LEAST]]) applies stablehlo.maximum
// CHECK: stablehlo.select {{.*}}alpa.results = [#alpa.sharding<S0>]
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %three = stablehlo.constant dense<3.0> : tensor<8xf32>
  %zeros = stablehlo.constant dense<0> : tensor<8xi32>
  %ones = stablehlo.constant dense<1> : tensor<8xi32>
  %false = stablehlo.constant dense<false> : tensor<i1>
  %least = stablehlo.constant dense<-2147483648> : tensor<i32>
  %small = stablehlo.compare LT, %x, %three : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
  %0:4 = stablehlo.while(%i = %x, %mask = %small, %count = %zeros, %bound = %three)
      : tensor<8xf32>, tensor<8xi1>, tensor<8xi32>, tensor<8xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %bound : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %2 = stablehlo.reduce(%1 init: %false) applies stablehlo.or across dimensions = [0] : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %next = stablehlo.add %count, %ones : tensor<8xi32>
    %turn = stablehlo.reduce(%next init: %least) applies stablehlo.maximum across dimensions = [0] : (tensor<8xi32>, tensor<i32>) -> tensor<i32>
    %number = stablehlo.convert %turn : (tensor<i32>) -> tensor<f32>
    %step = stablehlo.broadcast_in_dim %number, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %1 = stablehlo.add %i, %step : tensor<8xf32>
    %2 = stablehlo.compare LT, %1, %three : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %3 = stablehlo.and %mask, %2 : tensor<8xi1>
    %4 = stablehlo.select %mask, %1, %i : tensor<8xi1>, tensor<8xf32>
    %5 = stablehlo.select %mask, %next, %count : tensor<8xi1>, tensor<8xi32>
    stablehlo.return %4, %3, %5, %bound : tensor<8xf32>, tensor<8xi1>, tensor<8xi32>, tensor<8xf32>
  }
  return %0#0 : tensor<8xf32>
}

// -----

// A row that does not go on writes what is in its place.

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while
// CHECK: alpa.manual
// CHECK: "stablehlo.scatter"
func.func @main(%x: tensor<8xf32>, %places: tensor<8x1xi32>) -> tensor<8x6xf32> {
  %one = stablehlo.constant dense<1.0> : tensor<8xf32>
  %zeros = stablehlo.constant dense<0.0> : tensor<8x6xf32>
  %false = stablehlo.constant dense<false> : tensor<i1>
  %0:2 = stablehlo.while(%i = %x, %all = %zeros) : tensor<8xf32>, tensor<8x6xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %one : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %2 = stablehlo.reduce(%1 init: %false) applies stablehlo.or across dimensions = [0] : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %1 = stablehlo.compare LT, %i, %one : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %2 = stablehlo.add %i, %i : tensor<8xf32>
    %3 = stablehlo.select %1, %2, %i : tensor<8xi1>, tensor<8xf32>
    %4 = "stablehlo.gather"(%all, %places) <{dimension_numbers = #stablehlo.gather<offset_dims = [1], operand_batching_dims = [0], start_indices_batching_dims = [0], start_index_map = [1], index_vector_dim = 1>, indices_are_sorted = false, slice_sizes = array<i64: 1, 1>}> : (tensor<8x6xf32>, tensor<8x1xi32>) -> tensor<8x1xf32>
    %5 = stablehlo.reshape %4 : (tensor<8x1xf32>) -> tensor<8xf32>
    %6 = stablehlo.select %1, %2, %5 : tensor<8xi1>, tensor<8xf32>
    %7 = "stablehlo.scatter"(%all, %places, %6) <{indices_are_sorted = false, scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [1], input_batching_dims = [0], scatter_indices_batching_dims = [0], scatter_dims_to_operand_dims = [1], index_vector_dim = 1>, unique_indices = true}> ({
    ^bb0(%old: tensor<f32>, %new: tensor<f32>):
      stablehlo.return %new : tensor<f32>
    }) : (tensor<8x6xf32>, tensor<8x1xi32>, tensor<8xf32>) -> tensor<8x6xf32>
    stablehlo.return %3, %7 : tensor<8xf32>, tensor<8x6xf32>
  }
  return %0#1 : tensor<8x6xf32>
}
