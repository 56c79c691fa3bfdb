// RUN: stablehlo-alpa-opt %s --alpa-print-materialization=platform=tpu -o /dev/null 2>&1 | FileCheck %s

// XLA for TPU stores in 16 bits what products of f32 alone read at their default precision, through loops as well: the first loop collects %sums, of which the second one reads a block in each turn. What is read at a higher precision keeps its 32 bits.

// CHECK: remark: result 0 lives from {{[0-9]+}} to {{[0-9]+}}, 50 % of its bytes
// CHECK-NEXT: %rounded =
// CHECK: remark: result 0 lives from {{[0-9]+}} to {{[0-9]+$}}
// CHECK-NEXT: %exact =
// CHECK: remark: result 1 lives from {{[0-9]+}} to {{[0-9]+}}, 50 % of its bytes
// CHECK-NEXT: %i, %sums, %all = stablehlo.while

func.func @main(%x: tensor<2x128x128xf32>, %y: tensor<128x32xf32>, %w: tensor<128x128xf32>) -> (tensor<128x128xf32>, tensor<4x128x128xf32>) {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %four = stablehlo.constant dense<4> : tensor<i32>
  %none = stablehlo.constant dense<0.0> : tensor<4x128x128xf32>
  %nothing = stablehlo.constant dense<0.0> : tensor<128x128xf32>
  %rounded = "stablehlo.all_gather"(%x) <{all_gather_dim = 0 : i64, replica_groups = dense<[[0, 1]]> : tensor<1x2xi64>}> : (tensor<2x128x128xf32>) -> tensor<4x128x128xf32>
  %exact = "stablehlo.all_gather"(%y) <{all_gather_dim = 1 : i64, replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>}> : (tensor<128x32xf32>) -> tensor<128x128xf32>
  %product = stablehlo.dot_general %exact, %w, contracting_dims = [1] x [0], precision = [HIGHEST, HIGHEST] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
  %i, %sums, %all = stablehlo.while(%iArg = %zero, %sumsArg = %none, %allArg = %rounded) : tensor<i32>, tensor<4x128x128xf32>, tensor<4x128x128xf32>
    cond {
      %continues = stablehlo.compare LT, %iArg, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %continues : tensor<i1>
    } do {
      %slice = stablehlo.dynamic_slice %allArg, %iArg, %zero, %zero, sizes = [1, 128, 128] : (tensor<4x128x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x128x128xf32>
      %block = stablehlo.reshape %slice : (tensor<1x128x128xf32>) -> tensor<128x128xf32>
      %square = stablehlo.dot_general %block, %block, contracting_dims = [1] x [1] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
      %update = stablehlo.reshape %square : (tensor<128x128xf32>) -> tensor<1x128x128xf32>
      %updated = stablehlo.dynamic_update_slice %sumsArg, %update, %iArg, %zero, %zero : (tensor<4x128x128xf32>, tensor<1x128x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<4x128x128xf32>
      %next = stablehlo.add %iArg, %one : tensor<i32>
      stablehlo.return %next, %updated, %allArg : tensor<i32>, tensor<4x128x128xf32>, tensor<4x128x128xf32>
    }
  %j, %total, %read = stablehlo.while(%jArg = %zero, %totalArg = %product, %readArg = %sums) : tensor<i32>, tensor<128x128xf32>, tensor<4x128x128xf32>
    cond {
      %continues = stablehlo.compare LT, %jArg, %four : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %continues : tensor<i1>
    } do {
      %slice = stablehlo.dynamic_slice %readArg, %jArg, %zero, %zero, sizes = [1, 128, 128] : (tensor<4x128x128xf32>, tensor<i32>, tensor<i32>, tensor<i32>) -> tensor<1x128x128xf32>
      %block = stablehlo.reshape %slice : (tensor<1x128x128xf32>) -> tensor<128x128xf32>
      %square = stablehlo.dot_general %block, %w, contracting_dims = [1] x [0] : (tensor<128x128xf32>, tensor<128x128xf32>) -> tensor<128x128xf32>
      %sum = stablehlo.add %totalArg, %square : tensor<128x128xf32>
      %next = stablehlo.add %jArg, %one : tensor<i32>
      stablehlo.return %next, %sum, %readArg : tensor<i32>, tensor<128x128xf32>, tensor<4x128x128xf32>
    }
  return %total, %none : tensor<128x128xf32>, tensor<4x128x128xf32>
}
