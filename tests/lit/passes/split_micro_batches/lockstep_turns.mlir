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

// -----

// Turns are counted beside the rows: the count is of no row, and is not used
// behind the loop.

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while
// CHECK: stablehlo.compare LT
// CHECK: alpa.manual(%{{.*}}) on <["time"=2]> ins {{\[\[\["time"\]\]\]}} outs {{\[\[\]\]}}
// CHECK: stablehlo.reduce({{.*}}) applies stablehlo.or
// CHECK: stablehlo.and
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %most = stablehlo.constant dense<9> : tensor<i32>
  %all = stablehlo.constant dense<true> : tensor<8xi1>
  %three = stablehlo.constant dense<3.0> : tensor<8xf32>
  %false = stablehlo.constant dense<false> : tensor<i1>
  %0:3 = stablehlo.while(%i = %zero, %mask = %all, %z = %x) : tensor<i32>, tensor<8xi1>, tensor<8xf32>
  cond {
    %1 = stablehlo.compare LT, %i, %most : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %2 = stablehlo.reduce(%mask init: %false) applies stablehlo.or across dimensions = [0] : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
    %3 = stablehlo.and %1, %2 : tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %1 = stablehlo.compare LT, %z, %three : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %2 = stablehlo.and %mask, %1 : tensor<8xi1>
    %3 = stablehlo.add %z, %z : tensor<8xf32>
    %4 = stablehlo.select %mask, %3, %z : tensor<8xi1>, tensor<8xf32>
    stablehlo.return %next, %2, %4 : tensor<i32>, tensor<8xi1>, tensor<8xf32>
  }
  return %0#2 : tensor<8xf32>
}

// -----

// What is done in the first turn of rows, which are those that go on.

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while
// CHECK: alpa.manual(%{{.*}}) on <["time"=2]> ins {{\[\[\["time"\]\]\]}} outs {{\[\[\]\]}}
// CHECK: stablehlo.reduce({{.*}}) applies stablehlo.or
// CHECK: } do {
// CHECK: alpa.manual(%{{.*}}) on <["time"=2]> ins {{\[\[\["time"\]\]\]}} outs {{\[\[\]\]}}
// CHECK: stablehlo.reduce({{.*}}) applies stablehlo.or
// CHECK: stablehlo.select
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %zeros = stablehlo.constant dense<0> : tensor<8xi32>
  %ones = stablehlo.constant dense<1> : tensor<8xi32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %two = stablehlo.constant dense<2.0> : tensor<f32>
  %three = stablehlo.constant dense<3.0> : tensor<8xf32>
  %false = stablehlo.constant dense<false> : tensor<i1>
  %0:2 = stablehlo.while(%count = %zeros, %z = %x) : tensor<8xi32>, tensor<8xf32>
  cond {
    %1 = stablehlo.compare EQ, %count, %zeros : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
    %2 = stablehlo.compare LT, %z, %three : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %3 = stablehlo.or %1, %2 : tensor<8xi1>
    %4 = stablehlo.reduce(%3 init: %false) applies stablehlo.or across dimensions = [0] : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %4 : tensor<i1>
  } do {
    %1 = stablehlo.compare EQ, %count, %zeros : (tensor<8xi32>, tensor<8xi32>) -> tensor<8xi1>
    %2 = stablehlo.compare LT, %z, %three : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %3 = stablehlo.or %1, %2 : tensor<8xi1>
    %first = stablehlo.reduce(%1 init: %false) applies stablehlo.or across dimensions = [0] : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
    %step = stablehlo.select %first, %two, %one : tensor<i1>, tensor<f32>
    %steps = stablehlo.broadcast_in_dim %step, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %4 = stablehlo.add %z, %steps : tensor<8xf32>
    %5 = stablehlo.add %count, %ones : tensor<8xi32>
    %6 = stablehlo.select %3, %4, %z : tensor<8xi1>, tensor<8xf32>
    %7 = stablehlo.select %3, %5, %count : tensor<8xi1>, tensor<8xi32>
    stablehlo.return %7, %6 : tensor<8xi32>, tensor<8xf32>
  }
  return %0#1 : tensor<8xf32>
}

// -----

// Rows of windows: a mask per row is spread over what rows have.

// CHECK-LABEL: func.func @main
// CHECK: stablehlo.while
// CHECK: alpa.manual(%{{.*}}) on <["time"=2]> ins {{\[\[\["time"\]\]\]}} outs {{\[\[\]\]}}
// CHECK: stablehlo.reduce({{.*}}) applies stablehlo.or
// CHECK: stablehlo.select {{.*}}alpa.results = [#alpa.sharding<S0R>]
func.func @main(%x: tensor<8x4xf32>) -> tensor<8x4xf32> {
  %three = stablehlo.constant dense<3.0> : tensor<8xf32>
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %false = stablehlo.constant dense<false> : tensor<i1>
  %0 = stablehlo.while(%z = %x) : tensor<8x4xf32>
  cond {
    %1 = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
    %2 = stablehlo.compare LT, %1, %three : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %3 = stablehlo.reduce(%2 init: %false) applies stablehlo.or across dimensions = [0] : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %1 = stablehlo.reduce(%z init: %zero) applies stablehlo.add across dimensions = [1] : (tensor<8x4xf32>, tensor<f32>) -> tensor<8xf32>
    %2 = stablehlo.compare LT, %1, %three : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %3 = stablehlo.broadcast_in_dim %2, dims = [0] : (tensor<8xi1>) -> tensor<8x4xi1>
    %4 = stablehlo.add %z, %z : tensor<8x4xf32>
    %5 = stablehlo.select %3, %4, %z : tensor<8x4xi1>, tensor<8x4xf32>
    stablehlo.return %5 : tensor<8x4xf32>
  }
  return %0 : tensor<8x4xf32>
}

// -----

// The count is used behind the loop: a micro-batch of its own has another.
// The batch is whole for each.

// CHECK-LABEL: func.func @main
// CHECK-SAME: alpa.input = 0
// CHECK-NOT: alpa.manual
// CHECK: return
func.func @main(%x: tensor<8xf32>) -> (tensor<i32>, tensor<8xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %three = stablehlo.constant dense<3.0> : tensor<8xf32>
  %false = stablehlo.constant dense<false> : tensor<i1>
  %0:2 = stablehlo.while(%i = %zero, %z = %x) : tensor<i32>, tensor<8xf32>
  cond {
    %1 = stablehlo.compare LT, %z, %three : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %2 = stablehlo.reduce(%1 init: %false) applies stablehlo.or across dimensions = [0] : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %2 : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<i32>
    %1 = stablehlo.compare LT, %z, %three : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %3 = stablehlo.add %z, %z : tensor<8xf32>
    %4 = stablehlo.select %1, %3, %z : tensor<8xi1>, tensor<8xf32>
    stablehlo.return %next, %4 : tensor<i32>, tensor<8xf32>
  }
  return %0#0, %0#1 : tensor<i32>, tensor<8xf32>
}

// -----

// Rows go by a count of all turns: one that has stopped may go on.
// The batch is whole for each.

// CHECK-LABEL: func.func @main
// CHECK-SAME: alpa.input = 0
// CHECK-NOT: alpa.manual
// CHECK: return
func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  %one = stablehlo.constant dense<1.0> : tensor<f32>
  %false = stablehlo.constant dense<false> : tensor<i1>
  %0:2 = stablehlo.while(%i = %zero, %z = %x) : tensor<f32>, tensor<8xf32>
  cond {
    %1 = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %2 = stablehlo.compare GT, %z, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %3 = stablehlo.reduce(%2 init: %false) applies stablehlo.or across dimensions = [0] : (tensor<8xi1>, tensor<i1>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  } do {
    %next = stablehlo.add %i, %one : tensor<f32>
    %1 = stablehlo.broadcast_in_dim %i, dims = [] : (tensor<f32>) -> tensor<8xf32>
    %2 = stablehlo.compare GT, %z, %1 : (tensor<8xf32>, tensor<8xf32>) -> tensor<8xi1>
    %3 = stablehlo.add %z, %z : tensor<8xf32>
    %4 = stablehlo.select %2, %3, %z : tensor<8xi1>, tensor<8xf32>
    stablehlo.return %next, %4 : tensor<f32>, tensor<8xf32>
  }
  return %0#1 : tensor<8xf32>
}
