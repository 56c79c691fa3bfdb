// RUN: stablehlo-alpa-opt %s -alpa-print-sharding-rules -verify-diagnostics -o /dev/null

func.func @sum(%a: tensor<4x8xf32>, %init: tensor<f32>) -> tensor<4xf32> {
  // expected-remark @below {{#alpa.rule<([a, b], []) -> ([a]) {a=4, b=8:sum} linear(0, 1) flops=32> follower}}
  %0 = "stablehlo.reduce"(%a, %init) <{dimensions = array<i64: 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    // expected-remark @below {{follower}}
    %1 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @sum_from_zero(%a: tensor<4x8xf32>) -> tensor<4xf32> {
  // expected-remark @below {{rematerialized}}
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-remark @below {{#alpa.rule<([a, b], []) -> ([a]) {a=4, b=8:sum} linear(0, 1) linear(0) flops=32> follower}}
  %0 = "stablehlo.reduce"(%a, %zero) <{dimensions = array<i64: 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    // expected-remark @below {{follower}}
    %1 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @maximum(%a: tensor<4x8xf32>, %init: tensor<f32>) -> tensor<8xf32> {
  // expected-remark @below {{#alpa.rule<([a, b], []) -> ([b]) {a=4:max, b=8} flops=32> follower}}
  %0 = "stablehlo.reduce"(%a, %init) <{dimensions = array<i64: 0>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    // expected-remark @below {{follower}}
    %1 = stablehlo.maximum %x, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

func.func @any(%a: tensor<4x8xi1>, %init: tensor<i1>) -> tensor<i1> {
  // expected-remark @below {{#alpa.rule<([a, b], []) -> ([]) {a=4:or, b=8:or} flops=32> follower}}
  %0 = "stablehlo.reduce"(%a, %init) <{dimensions = array<i64: 0, 1>}> ({
  ^bb0(%x: tensor<i1>, %y: tensor<i1>):
    // expected-remark @below {{follower}}
    %1 = stablehlo.add %x, %y : tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<4x8xi1>, tensor<i1>) -> tensor<i1>
  return %0 : tensor<i1>
}

func.func @two_operands(%a: tensor<4x8xf32>, %b: tensor<4x8xi32>, %f: tensor<f32>, %i: tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>) {
  // expected-remark @below {{#alpa.rule<([a, b], [a, b], [], []) -> ([a], [a]) {a=4, b=8:ordered} flops=64> follower}}
  %0:2 = "stablehlo.reduce"(%a, %b, %f, %i) <{dimensions = array<i64: 1>}> ({
  ^bb0(%x: tensor<f32>, %n: tensor<i32>, %y: tensor<f32>, %m: tensor<i32>):
    // expected-remark @below {{follower}}
    %1 = stablehlo.maximum %x, %y : tensor<f32>
    // expected-remark @below {{follower}}
    %2 = stablehlo.minimum %n, %m : tensor<i32>
    stablehlo.return %1, %2 : tensor<f32>, tensor<i32>
  }) : (tensor<4x8xf32>, tensor<4x8xi32>, tensor<f32>, tensor<i32>) -> (tensor<4xf32>, tensor<4xi32>)
  return %0#0, %0#1 : tensor<4xf32>, tensor<4xi32>
}

func.func @cumulative_sum(%a: tensor<4x8xf32>, %init: tensor<f32>) -> tensor<4x8xf32> {
  // expected-remark @below {{#alpa.rule<([a, b], []) -> ([a, c]) {a=4, b=8:replicated, c=8:replicated} flops=256> leader}}
  %0 = "stablehlo.reduce_window"(%a, %init) <{padding = dense<[[0, 0], [7, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 8>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    // expected-remark @below {{follower}}
    %1 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @cumulative_sum_from_zero(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-remark @below {{rematerialized}}
  %zero = stablehlo.constant dense<0.0> : tensor<f32>
  // expected-remark @below {{#alpa.rule<([a, b], []) -> ([a, b]) {a=4, b=8:ordered} linear(0) flops=256> follower}}
  %0 = "stablehlo.reduce_window"(%a, %zero) <{padding = dense<[[0, 0], [7, 0]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 8>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    // expected-remark @below {{follower}}
    %1 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<f32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// XLA makes a tree of windows of 16.
func.func @cumulative_maximum_of_the_rest(%a: tensor<4x64xf32>, %init: tensor<f32>) -> tensor<4x64xf32> {
  // expected-remark @below {{#alpa.rule<([a, b], []) -> ([a, b]) {a=4, b=64:ordered} flops=4096> follower}}
  %0 = "stablehlo.reduce_window"(%a, %init) <{padding = dense<[[0, 0], [0, 63]]> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 64>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    // expected-remark @below {{follower}}
    %1 = stablehlo.maximum %x, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x64xf32>, tensor<f32>) -> tensor<4x64xf32>
  return %0 : tensor<4x64xf32>
}

func.func @gradient_of_pooling(%a: tensor<4x8xf32>, %s: tensor<4x4xf32>, %init: tensor<f32>) -> tensor<4x8xf32> {
  // expected-remark @below {{#alpa.rule<([a, (b c)], [a, b], []) -> ([a, (b c)]) {a=4, b=4, c=2:replicated} flops=32> leader}}
  %0 = "stablehlo.select_and_scatter"(%a, %s, %init) <{padding = dense<0> : tensor<2x2xi64>, window_dimensions = array<i64: 1, 2>, window_strides = array<i64: 1, 2>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    // expected-remark @below {{follower}}
    %1 = stablehlo.compare GE, %x, %y, FLOAT : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }, {
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    // expected-remark @below {{follower}}
    %1 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %1 : tensor<f32>
  }) : (tensor<4x8xf32>, tensor<4x4xf32>, tensor<f32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

func.func @sort(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-remark @below {{#alpa.rule<([a, b]) -> ([a, b]) {a=4, b=8:sorted} flops=96> leader}}
  %0 = "stablehlo.sort"(%a) <{dimension = 1 : i64, is_stable = true}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    // expected-remark @below {{follower}}
    %1 = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}

// No number of blocks squared divides 6; what is equal has an order only in stable sorts.
func.func @whole_sorts(%a: tensor<6xf32>, %b: tensor<8xf32>, %i: tensor<8xi32>) -> (tensor<6xf32>, tensor<8xi32>) {
  // expected-remark @below {{#alpa.rule<([a]) -> ([a]) {a=6:replicated} flops=18> leader}}
  %0 = "stablehlo.sort"(%a) <{dimension = 0 : i64, is_stable = true}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    // expected-remark @below {{follower}}
    %1 = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %1 : tensor<i1>
  }) : (tensor<6xf32>) -> tensor<6xf32>
  // expected-remark @below {{#alpa.rule<([a], [a]) -> ([a], [a]) {a=8:replicated} flops=24> leader}}
  %2:2 = "stablehlo.sort"(%b, %i) <{dimension = 0 : i64, is_stable = false}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>, %p: tensor<i32>, %q: tensor<i32>):
    // expected-remark @below {{follower}}
    %3 = stablehlo.compare LT, %x, %y, TOTALORDER : (tensor<f32>, tensor<f32>) -> tensor<i1>
    stablehlo.return %3 : tensor<i1>
  }) : (tensor<8xf32>, tensor<8xi32>) -> (tensor<8xf32>, tensor<8xi32>)
  return %0, %2#1 : tensor<6xf32>, tensor<8xi32>
}

func.func @top_k(%a: tensor<4x8xf32>) -> (tensor<4x3xf32>, tensor<4x3xi32>) {
  // expected-remark @below {{#alpa.rule<([a, b]) -> ([a, c], [a, d]) {a=4, b=8:ordered, c=3:replicated, d=3:replicated} flops=96> leader}}
  %0:2 = chlo.top_k(%a, k = 3) : tensor<4x8xf32> -> (tensor<4x3xf32>, tensor<4x3xi32>)
  return %0#0, %0#1 : tensor<4x3xf32>, tensor<4x3xi32>
}

// Shares of bytes wrap, those of halves are what they are.
func.func @promoting_sums(%a: tensor<4x8xi8>, %i: tensor<i8>, %b: tensor<4x8xf16>, %f: tensor<f16>) -> (tensor<4xi32>, tensor<4xf32>) {
  // expected-remark @below {{#alpa.rule<([a, b], []) -> ([a]) {a=4, b=8:sum} flops=32> follower}}
  %0 = "stablehlo.reduce"(%a, %i) <{dimensions = array<i64: 1>}> ({
  ^bb0(%x: tensor<i32>, %y: tensor<i32>):
    // expected-remark @below {{#alpa.rule<([], []) -> ([]) {} linear(0, 1)> follower}}
    %2 = stablehlo.add %x, %y : tensor<i32>
    stablehlo.return %2 : tensor<i32>
  }) : (tensor<4x8xi8>, tensor<i8>) -> tensor<4xi32>
  // expected-remark @below {{#alpa.rule<([a, b], []) -> ([a]) {a=4, b=8:sum} linear(0, 1) flops=32> follower}}
  %1 = "stablehlo.reduce"(%b, %f) <{dimensions = array<i64: 1>}> ({
  ^bb0(%x: tensor<f32>, %y: tensor<f32>):
    // expected-remark @below {{#alpa.rule<([], []) -> ([]) {} linear(0, 1)> follower}}
    %2 = stablehlo.add %x, %y : tensor<f32>
    stablehlo.return %2 : tensor<f32>
  }) : (tensor<4x8xf16>, tensor<f16>) -> tensor<4xf32>
  return %0, %1 : tensor<4xi32>, tensor<4xf32>
}

// No collective knows their order: the body combines what devices have found.
func.func @complex_numbers_have_no_order_to_reduce_by(%a: tensor<4x8xcomplex<f32>>, %init: tensor<complex<f32>>) -> tensor<4xcomplex<f32>> {
  // expected-remark @below {{#alpa.rule<([a, b], []) -> ([a]) {a=4, b=8:ordered} flops=32> follower}}
  %0 = "stablehlo.reduce"(%a, %init) <{dimensions = array<i64: 1>}> ({
  ^bb0(%x: tensor<complex<f32>>, %y: tensor<complex<f32>>):
    // expected-remark @below {{#alpa.rule<([], []) -> ([]) {}> follower}}
    %2 = stablehlo.maximum %x, %y : tensor<complex<f32>>
    stablehlo.return %2 : tensor<complex<f32>>
  }) : (tensor<4x8xcomplex<f32>>, tensor<complex<f32>>) -> tensor<4xcomplex<f32>>
  return %0 : tensor<4xcomplex<f32>>
}
