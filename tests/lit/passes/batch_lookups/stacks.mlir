// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-batch-lookups | FileCheck %s

// What a scan keeps for its gradient: indices of every turn, in a stack.

// Written from the first row on.

// CHECK-LABEL: func.func @main
// CHECK: %[[ROW:.+]] = stablehlo.reshape
// CHECK-NEXT: %[[BEST:.+]] = stablehlo.slice %[[ROW]] [0:8, 1:2]
// CHECK-NEXT: "stablehlo.gather"(%{{.+}}, %[[BEST]]) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0]
func.func @main(%x: tensor<8x4xf32>, %best: tensor<8x1xi32>, %i: tensor<i32>) -> tensor<8xf32> {
  %rows = stablehlo.iota dim = 0 : tensor<8x1xi32>
  %first = stablehlo.constant dense<0> : tensor<i32>
  %none = stablehlo.constant dense<0> : tensor<3x8x2xi32>
  %0:2 = stablehlo.while(%turn = %first, %stack = %none) : tensor<i32>, tensor<3x8x2xi32>
  cond {
    %limit = stablehlo.constant dense<3> : tensor<i32>
    %more = stablehlo.compare LT, %turn, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %indices = stablehlo.concatenate %rows, %best, dim = 1 : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x2xi32>
    %wide = stablehlo.broadcast_in_dim %indices, dims = [1, 2] : (tensor<8x2xi32>) -> tensor<1x8x2xi32>
    %back = stablehlo.subtract %two, %turn : tensor<i32>
    %next = stablehlo.dynamic_update_slice %stack, %wide, %turn, %zero, %zero : (tensor<3x8x2xi32>, tensor<1x8x2xi32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x8x2xi32>
    %later = stablehlo.add %turn, %one : tensor<i32>
    stablehlo.return %later, %next : tensor<i32>, tensor<3x8x2xi32>
  }
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.dynamic_slice %0#1, %i, %zero, %zero, sizes = [1, 8, 2] : (tensor<3x8x2xi32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2xi32>
  %2 = stablehlo.reshape %1 : (tensor<1x8x2xi32>) -> tensor<8x2xi32>
  %3 = "stablehlo.gather"(%x, %2) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}

// -----

// Written from the last row on, as by a scan in reverse.

// CHECK-LABEL: func.func @main
// CHECK: %[[ROW:.+]] = stablehlo.reshape
// CHECK-NEXT: %[[BEST:.+]] = stablehlo.slice %[[ROW]] [0:8, 1:2]
// CHECK-NEXT: "stablehlo.gather"(%{{.+}}, %[[BEST]]) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1], operand_batching_dims = [0]
func.func @main(%x: tensor<8x4xf32>, %best: tensor<8x1xi32>, %i: tensor<i32>) -> tensor<8xf32> {
  %rows = stablehlo.iota dim = 0 : tensor<8x1xi32>
  %first = stablehlo.constant dense<0> : tensor<i32>
  %none = stablehlo.constant dense<0> : tensor<3x8x2xi32>
  %0:2 = stablehlo.while(%turn = %first, %stack = %none) : tensor<i32>, tensor<3x8x2xi32>
  cond {
    %limit = stablehlo.constant dense<3> : tensor<i32>
    %more = stablehlo.compare LT, %turn, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %indices = stablehlo.concatenate %rows, %best, dim = 1 : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x2xi32>
    %wide = stablehlo.broadcast_in_dim %indices, dims = [1, 2] : (tensor<8x2xi32>) -> tensor<1x8x2xi32>
    %back = stablehlo.subtract %two, %turn : tensor<i32>
    %next = stablehlo.dynamic_update_slice %stack, %wide, %back, %zero, %zero : (tensor<3x8x2xi32>, tensor<1x8x2xi32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x8x2xi32>
    %later = stablehlo.add %turn, %one : tensor<i32>
    stablehlo.return %later, %next : tensor<i32>, tensor<3x8x2xi32>
  }
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.dynamic_slice %0#1, %i, %zero, %zero, sizes = [1, 8, 2] : (tensor<3x8x2xi32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2xi32>
  %2 = stablehlo.reshape %1 : (tensor<1x8x2xi32>) -> tensor<8x2xi32>
  %3 = "stablehlo.gather"(%x, %2) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}

// -----

// The last row is never written.

// CHECK-LABEL: func.func @main
// CHECK: %[[ROW:.+]] = stablehlo.reshape
// CHECK-NEXT: "stablehlo.gather"(%{{.+}}, %[[ROW]]) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1]
func.func @main(%x: tensor<8x4xf32>, %best: tensor<8x1xi32>, %i: tensor<i32>) -> tensor<8xf32> {
  %rows = stablehlo.iota dim = 0 : tensor<8x1xi32>
  %first = stablehlo.constant dense<0> : tensor<i32>
  %none = stablehlo.constant dense<0> : tensor<3x8x2xi32>
  %0:2 = stablehlo.while(%turn = %first, %stack = %none) : tensor<i32>, tensor<3x8x2xi32>
  cond {
    %limit = stablehlo.constant dense<2> : tensor<i32>
    %more = stablehlo.compare LT, %turn, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %indices = stablehlo.concatenate %rows, %best, dim = 1 : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x2xi32>
    %wide = stablehlo.broadcast_in_dim %indices, dims = [1, 2] : (tensor<8x2xi32>) -> tensor<1x8x2xi32>
    %back = stablehlo.subtract %two, %turn : tensor<i32>
    %next = stablehlo.dynamic_update_slice %stack, %wide, %turn, %zero, %zero : (tensor<3x8x2xi32>, tensor<1x8x2xi32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x8x2xi32>
    %later = stablehlo.add %turn, %one : tensor<i32>
    stablehlo.return %later, %next : tensor<i32>, tensor<3x8x2xi32>
  }
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.dynamic_slice %0#1, %i, %zero, %zero, sizes = [1, 8, 2] : (tensor<3x8x2xi32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2xi32>
  %2 = stablehlo.reshape %1 : (tensor<1x8x2xi32>) -> tensor<8x2xi32>
  %3 = "stablehlo.gather"(%x, %2) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}

// -----

// Nor the first: the last turn writes to the last row again.

// CHECK-LABEL: func.func @main
// CHECK: %[[ROW:.+]] = stablehlo.reshape
// CHECK-NEXT: "stablehlo.gather"(%{{.+}}, %[[ROW]]) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1]
func.func @main(%x: tensor<8x4xf32>, %best: tensor<8x1xi32>, %i: tensor<i32>) -> tensor<8xf32> {
  %rows = stablehlo.iota dim = 0 : tensor<8x1xi32>
  %first = stablehlo.constant dense<1> : tensor<i32>
  %none = stablehlo.constant dense<0> : tensor<3x8x2xi32>
  %0:2 = stablehlo.while(%turn = %first, %stack = %none) : tensor<i32>, tensor<3x8x2xi32>
  cond {
    %limit = stablehlo.constant dense<4> : tensor<i32>
    %more = stablehlo.compare LT, %turn, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %indices = stablehlo.concatenate %rows, %best, dim = 1 : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x2xi32>
    %wide = stablehlo.broadcast_in_dim %indices, dims = [1, 2] : (tensor<8x2xi32>) -> tensor<1x8x2xi32>
    %back = stablehlo.subtract %two, %turn : tensor<i32>
    %next = stablehlo.dynamic_update_slice %stack, %wide, %turn, %zero, %zero : (tensor<3x8x2xi32>, tensor<1x8x2xi32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x8x2xi32>
    %later = stablehlo.add %turn, %one : tensor<i32>
    stablehlo.return %later, %next : tensor<i32>, tensor<3x8x2xi32>
  }
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.dynamic_slice %0#1, %i, %zero, %zero, sizes = [1, 8, 2] : (tensor<3x8x2xi32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2xi32>
  %2 = stablehlo.reshape %1 : (tensor<1x8x2xi32>) -> tensor<8x2xi32>
  %3 = "stablehlo.gather"(%x, %2) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}

// -----

// All turns write to the first row.

// CHECK-LABEL: func.func @main
// CHECK: %[[ROW:.+]] = stablehlo.reshape
// CHECK-NEXT: "stablehlo.gather"(%{{.+}}, %[[ROW]]) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1]
func.func @main(%x: tensor<8x4xf32>, %best: tensor<8x1xi32>, %i: tensor<i32>) -> tensor<8xf32> {
  %rows = stablehlo.iota dim = 0 : tensor<8x1xi32>
  %first = stablehlo.constant dense<0> : tensor<i32>
  %none = stablehlo.constant dense<0> : tensor<3x8x2xi32>
  %0:2 = stablehlo.while(%turn = %first, %stack = %none) : tensor<i32>, tensor<3x8x2xi32>
  cond {
    %limit = stablehlo.constant dense<3> : tensor<i32>
    %more = stablehlo.compare LT, %turn, %limit, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %more : tensor<i1>
  } do {
    %zero = stablehlo.constant dense<0> : tensor<i32>
    %one = stablehlo.constant dense<1> : tensor<i32>
    %two = stablehlo.constant dense<2> : tensor<i32>
    %indices = stablehlo.concatenate %rows, %best, dim = 1 : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x2xi32>
    %wide = stablehlo.broadcast_in_dim %indices, dims = [1, 2] : (tensor<8x2xi32>) -> tensor<1x8x2xi32>
    %back = stablehlo.subtract %two, %turn : tensor<i32>
    %next = stablehlo.dynamic_update_slice %stack, %wide, %zero, %zero, %zero : (tensor<3x8x2xi32>, tensor<1x8x2xi32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<3x8x2xi32>
    %later = stablehlo.add %turn, %one : tensor<i32>
    stablehlo.return %later, %next : tensor<i32>, tensor<3x8x2xi32>
  }
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %1 = stablehlo.dynamic_slice %0#1, %i, %zero, %zero, sizes = [1, 8, 2] : (tensor<3x8x2xi32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x8x2xi32>
  %2 = stablehlo.reshape %1 : (tensor<1x8x2xi32>) -> tensor<8x2xi32>
  %3 = "stablehlo.gather"(%x, %2) <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1], start_index_map = [0, 1], index_vector_dim = 1>, slice_sizes = array<i64: 1, 1>}> : (tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8xf32>
  return %3 : tensor<8xf32>
}
