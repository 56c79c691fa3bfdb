// RUN: stablehlo-alpa-opt %s -alpa-print-sharding-rules -verify-diagnostics -o /dev/null

func.func @broadcast(%a: tensor<4x1xf32>) -> tensor<2x4x8xf32> {
  // expected-remark @below {{#alpa.rule<([a, 1]) -> ([b, a, c]) {a=4, b=2, c=8} linear(0)> rematerialized}}
  %0 = stablehlo.broadcast_in_dim %a, dims = [1, 2] : (tensor<4x1xf32>) -> tensor<2x4x8xf32>
  return %0 : tensor<2x4x8xf32>
}

func.func @reshape_merges_and_splits(%a: tensor<4x6x8xf32>) -> tensor<24x2x4xf32> {
  // expected-remark @below {{#alpa.rule<([a, b, (c d)]) -> ([(a b), c, d]) {a=4, b=6, c=2, d=4} linear(0)> follower}}
  %0 = stablehlo.reshape %a : (tensor<4x6x8xf32>) -> tensor<24x2x4xf32>
  return %0 : tensor<24x2x4xf32>
}

func.func @reshape_shares_a_divisor(%a: tensor<6x4x5xf32>) -> tensor<4x6x5xf32> {
  // expected-remark @below {{#alpa.rule<([(a b), e, f]) -> ([(a c), d, f]) {a=2, b=3:replicated, c=2:replicated, d=6:replicated, e=4:replicated, f=5} linear(0)> follower}}
  %0 = stablehlo.reshape %a : (tensor<6x4x5xf32>) -> tensor<4x6x5xf32>
  return %0 : tensor<4x6x5xf32>
}

func.func @reshape_size_one(%a: tensor<1x4x1xf32>) -> tensor<4xf32> {
  // expected-remark @below {{#alpa.rule<([1, a, 1]) -> ([a]) {a=4} linear(0)> follower}}
  %0 = stablehlo.reshape %a : (tensor<1x4x1xf32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @transpose(%a: tensor<2x3x4xf32>) -> tensor<4x2x3xf32> {
  // expected-remark @below {{#alpa.rule<([b, c, a]) -> ([a, b, c]) {a=4, b=2, c=3} linear(0)> follower}}
  %0 = stablehlo.transpose %a, dims = [2, 0, 1] : (tensor<2x3x4xf32>) -> tensor<4x2x3xf32>
  return %0 : tensor<4x2x3xf32>
}

func.func @reverse(%a: tensor<2x3xf32>) -> tensor<2x3xf32> {
  // expected-remark @below {{#alpa.rule<([a, b]) -> ([a, b]) {a=2, b=3:windowed} linear(0)> leader}}
  %0 = stablehlo.reverse %a, dims = [1] : tensor<2x3xf32>
  return %0 : tensor<2x3xf32>
}

func.func @slice(%a: tensor<4x8xf32>) -> tensor<4x4xf32> {
  // expected-remark @below {{#alpa.rule<([a, (b c)]) -> ([a, b]) {a=4, b=4:windowed, c=2:replicated} linear(0)> leader}}
  %0 = stablehlo.slice %a [0:4, 2:6] : (tensor<4x8xf32>) -> tensor<4x4xf32>
  return %0 : tensor<4x4xf32>
}

func.func @pad(%a: tensor<4x8xf32>) -> tensor<4x9xf32> {
  // expected-remark @below {{#alpa.rule<() -> ([]) {} linear()> rematerialized}}
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-remark @below {{#alpa.rule<([a, b], []) -> ([a, c]) {a=4, b=8:replicated, c=9:replicated} linear(0, 1) linear(0)> leader}}
  %0 = stablehlo.pad %a, %zero, low = [0, 1], high = [0, 0], interior = [0, 0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x9xf32>
  return %0 : tensor<4x9xf32>
}

func.func @concatenate(%a: tensor<4x8xf32>, %b: tensor<4x2xf32>) -> tensor<4x10xf32> {
  // expected-remark @below {{#alpa.rule<([a, b], [a, c]) -> ([a, d]) {a=4, b=8:replicated, c=2:replicated, d=10:replicated} linear(0, 1)> leader}}
  %0 = stablehlo.concatenate %a, %b, dim = 1 : (tensor<4x8xf32>, tensor<4x2xf32>) -> tensor<4x10xf32>
  return %0 : tensor<4x10xf32>
}

func.func @one_of_each(%a: tensor<4x8xf32>) -> tensor<2x4xf32> {
  // expected-remark @below {{#alpa.rule<([(a b), (c d)]) -> ([a, c]) {a=2, b=2:replicated, c=4, d=2:replicated} linear(0)> leader}}
  %0 = stablehlo.slice %a [1:4:2, 0:7:2] : (tensor<4x8xf32>) -> tensor<2x4xf32>
  return %0 : tensor<2x4xf32>
}

func.func @neither_start_nor_end_of_each(%a: tensor<4x9xf32>) -> tensor<1x4xf32> {
  // expected-remark @below {{#alpa.rule<([a, b]) -> ([1, c]) {a=4:sum, b=9:replicated, c=4:replicated} linear(0)> leader}}
  %0 = stablehlo.slice %a [2:4:2, 0:8:2] : (tensor<4x9xf32>) -> tensor<1x4xf32>
  return %0 : tensor<1x4xf32>
}

func.func @one_in_each(%a: tensor<2x4xf32>, %zero: tensor<f32>) -> tensor<4x12xf32> {
  // expected-remark @below {{#alpa.rule<([a, c], []) -> ([(a b), (c d)]) {a=2, b=2:replicated, c=4, d=3:replicated} linear(0, 1)> leader}}
  %0 = stablehlo.pad %a, %zero, low = [1, 0], high = [0, 2], interior = [1, 2] : (tensor<2x4xf32>, tensor<f32>) -> tensor<4x12xf32>
  return %0 : tensor<4x12xf32>
}

func.func @few_among_many(%a: tensor<3x4xf32>, %zero: tensor<f32>) -> tensor<8x8xf32> {
  // expected-remark @below {{#alpa.rule<([d, b], []) -> ([a, (b c)]) {a=8, b=4:windowed, c=2:replicated, d=3:replicated} linear(0, 1)> leader}}
  %0 = stablehlo.pad %a, %zero, low = [2, 4], high = [3, 0], interior = [0, 0] : (tensor<3x4xf32>, tensor<f32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

func.func @dynamic_slice(%a: tensor<4x8xf32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<1x8xf32> {
  // expected-remark @below {{#alpa.rule<([a, b], [], []) -> ([1, b]) {a=4:sum, b=8} linear(0) untouched_operands(0)> leader}}
  %0 = stablehlo.dynamic_slice %a, %i, %j, sizes = [1, 8] : (tensor<4x8xf32>, tensor<i32>, tensor<i32>) -> tensor<1x8xf32>
  return %0 : tensor<1x8xf32>
}

func.func @dynamic_update_slice(%a: tensor<4x8xf32>, %u: tensor<1x8xf32>, %i: tensor<i32>, %j: tensor<i32>) -> tensor<4x8xf32> {
  // expected-remark @below {{#alpa.rule<([a, b], [1, b], [], []) -> ([a, b]) {a=4, b=8} linear(0, 1) untouched_operands(0) untouched_results(0)> leader}}
  %0 = stablehlo.dynamic_update_slice %a, %u, %i, %j : (tensor<4x8xf32>, tensor<1x8xf32>, tensor<i32>, tensor<i32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @moved(%a: tensor<4x8xf32>, %v: tensor<f32>) -> tensor<4x8xf32> {
  // expected-remark @below {{#alpa.rule<([a, b], []) -> ([a, b]) {a=4, b=8:windowed} linear(0, 1)> follower}}
  %0 = stablehlo.pad %a, %v, low = [0, 1], high = [0, -1], interior = [0, 0] : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
