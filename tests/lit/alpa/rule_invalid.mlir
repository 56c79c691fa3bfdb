// RUN: stablehlo-alpa-opt %s -split-input-file -verify-diagnostics -allow-unregistered-dialect

// expected-error @below {{sharding rule has a tensor with a factor twice}}
"test.op"() {rule = #alpa.rule<([a, a]) -> ([a])>} : () -> ()

// -----

// expected-error @below {{sharding rule factor a is parallel, and not every result has it}}
"test.op"() {rule = #alpa.rule<([a]) -> ([a], [])>} : () -> ()

// -----

// expected-error @below {{sharding rule factor a is reduced, and a result has it}}
"test.op"() {rule = #alpa.rule<([a]) -> ([a]) {a=sum}>} : () -> ()

// -----

// expected-error @below {{sharding rule factor a is reduced, and no operand has it}}
"test.op"() {rule = #alpa.rule<() -> () {a=4:sum}>} : () -> ()

// -----

// expected-error @below {{sharding rule factor a has size 0}}
"test.op"() {rule = #alpa.rule<([a]) -> ([a]) {a=0}>} : () -> ()

// -----

// expected-error @below {{sharding rule names operands or results that are not there, or not in order}}
"test.op"() {rule = #alpa.rule<([a]) -> ([a]) {} linear(1)>} : () -> ()

// -----

// expected-error @below {{sharding rule has a number of operations that is negative or not finite}}
"test.op"() {rule = #alpa.rule<([a]) -> ([a]) {} flops=-1>} : () -> ()

// -----

// expected-error @below {{'often' is no kind of a factor, known are replicated, sum, product, max, min, and, or, ordered, sorted, windowed, windowed_sum}}
"test.op"() {rule = #alpa.rule<([a]) -> ([a]) {a=often}>} : () -> ()

// -----

// expected-error @below {{factor 'a' is there twice}}
"test.op"() {rule = #alpa.rule<([a]) -> ([a]) {a=2, a=2}>} : () -> ()

// -----

// expected-error @below {{expected the name of a factor or 1}}
"test.op"() {rule = #alpa.rule<([2]) -> ([1])>} : () -> ()

// -----

// expected-error @below {{'sideways' is none of linear, algebraic, accumulators, untouched_operands, untouched_results and flops}}
"test.op"() {rule = #alpa.rule<([a]) -> ([a]) {} sideways(0)>} : () -> ()

// -----

// On an operator a rule has to fit it.

func.func @operands(%a: tensor<8xf32>) {
  // expected-error @below {{sharding rule names 2 operands, the operator has 1}}
  "other.op"(%a) {alpa.rule = #alpa.rule<([a], [a]) -> ()  {a=replicated}>} : (tensor<8xf32>) -> ()
  return
}

// -----

func.func @rank(%a: tensor<8xf32>) {
  // expected-error @below {{sharding rule gives operand 0 2 dimensions, it has 1}}
  "other.op"(%a) {alpa.rule = #alpa.rule<([a, b]) -> () {a=8:replicated, b=8:replicated}>} : (tensor<8xf32>) -> ()
  return
}

// -----

func.func @size(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{sharding rule makes dimension 0 of operand 0 of size 4, it has size 8}}
  %0 = "other.op"(%a) {alpa.rule = #alpa.rule<([a]) -> ([a]) {a=4}>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @huge(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{sharding rule makes dimension 0 of operand 0 of size}}
  %0 = "other.op"(%a) {alpa.rule = #alpa.rule<([(a b)]) -> ([(a b)]) {a=4611686018427387904, b=4611686018427387904}>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @unknown_size(%a: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'alpa.rule' has factors whose size no shape gives}}
  %0 = "other.op"(%a) {alpa.rule = #alpa.rule<([(a b)]) -> ([(a b)])>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

func.func @no_sums(%a: tensor<8x4xi1>) -> tensor<8xi1> {
  // expected-error @below {{sharding rule makes partial sums, 'tensor<8xi1>' has none}}
  %0 = "other.op"(%a) {alpa.rule = #alpa.rule<([a, b]) -> ([a]) {b=sum}>} : (tensor<8x4xi1>) -> tensor<8xi1>
  return %0 : tensor<8xi1>
}

// -----

func.func @own_rule(%a: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // expected-error @below {{'alpa.rule' allows what the operator's own rule does not: it may only replicate factors and leave out linear operands of #alpa.rule<([b, a]) -> ([a, b])}}
  %0 = stablehlo.transpose %a, dims = [1, 0] {alpa.rule = #alpa.rule<([a, b]) -> ([a, b])>} : (tensor<8x8xf32>) -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// -----

// Shares of devices do not go through a product.
func.func @algebraic_only(%a: tensor<8xf32>, %b: tensor<8xf32>) -> tensor<8xf32> {
  // expected-error @below {{'alpa.rule' allows what the operator's own rule does not: it may only replicate factors and leave out linear operands of #alpa.rule<([a], [a]) -> ([a]) {a=8} algebraic(0) algebraic(1)>}}
  %0 = stablehlo.multiply %a, %b {alpa.rule = #alpa.rule<([a], [a]) -> ([a]) {a=8} linear(0)>} : tensor<8xf32>
  return %0 : tensor<8xf32>
}

// -----

// expected-error @below {{sharding rule factor a is ordered, and no operand has it}}
"test.op"() {rule = #alpa.rule<() -> ([a]) {a=4:ordered}>} : () -> ()

// -----

// expected-error @below {{sharding rule factor a is windowed, and no operand has it}}
"test.op"() {rule = #alpa.rule<() -> ([a]) {a=4:windowed}>} : () -> ()

// -----

// expected-error @below {{sharding rule factor a is parallel, and not every result has it}}
"test.op"() {rule = #alpa.rule<([a]) -> ([1]) {a=4:windowed}>} : () -> ()

// -----

// expected-error @below {{sharding rule factor a is reduced, and a result has it}}
"test.op"() {rule = #alpa.rule<([a]) -> ([a]) {a=4:windowed_sum}>} : () -> ()

// -----

// An operator that splits nothing because of what it is cannot be made to.
func.func @whole(%t: tensor<8x!quant.uniform<i8:f32, 0.5>>, %i: tensor<4x1xi32>, %u: tensor<4x!quant.uniform<i8:f32, 0.5>>) -> tensor<8x!quant.uniform<i8:f32, 0.5>> {
  // expected-error @below {{'alpa.rule' allows what the operator's own rule does not: it may only replicate factors and leave out linear operands of #alpa.rule<([a], [b, c], [d]) -> ([e]) {a=8:replicated}}
  %0 = "stablehlo.scatter"(%t, %i, %u) <{scatter_dimension_numbers = #stablehlo.scatter<inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>}> ({
  ^bb0(%a: tensor<!quant.uniform<i8:f32, 0.5>>, %b: tensor<!quant.uniform<i8:f32, 0.5>>):
    stablehlo.return %b : tensor<!quant.uniform<i8:f32, 0.5>>
  }) {alpa.rule = #alpa.rule<([a], [b, 1], [b]) -> ([a]) {b=replicated}>} : (tensor<8x!quant.uniform<i8:f32, 0.5>>, tensor<4x1xi32>, tensor<4x!quant.uniform<i8:f32, 0.5>>) -> tensor<8x!quant.uniform<i8:f32, 0.5>>
  return %0 : tensor<8x!quant.uniform<i8:f32, 0.5>>
}

// -----

// A linear operand is more than nothing as well.
func.func @whole_linear(%s: tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>) {
  // expected-error @below {{'alpa.rule' allows what the operator's own rule does not}}
  %0, %1 = stablehlo.rng_bit_generator %s, algorithm = THREE_FRY {alpa.rule = #alpa.rule<([a]) -> ([a], [b]) {a=replicated, b=replicated} linear(0)>} : (tensor<2xui64>) -> (tensor<2xui64>, tensor<8xui32>)
  return %0, %1 : tensor<2xui64>, tensor<8xui32>
}

// -----

func.func @index(%a: tensor<8x4xindex>) -> tensor<8x4xindex> {
  // expected-error @below {{sharding rule splits operand 0, whose elements 'index' devices cannot exchange}}
  %0 = "other.op"(%a) {alpa.rule = #alpa.rule<([a, b]) -> ([a, b]) {b=replicated}>} : (tensor<8x4xindex>) -> tensor<8x4xindex>
  return %0 : tensor<8x4xindex>
}

// -----

func.func @scales_per_axis(%a: tensor<2x4xi8>) -> tensor<2x4x!quant.uniform<i8:f32:0, {0.5, 0.25}>> {
  // expected-error @below {{sharding rule splits result 0, whose elements '!quant.uniform<i8:f32:0, {5.000000e-01,2.500000e-01}>' devices cannot exchange}}
  %0 = stablehlo.custom_call @scale(%a) {alpa.rule = #alpa.rule<([a, b]) -> ([a, b]) {a=replicated, b}>} : (tensor<2x4xi8>) -> tensor<2x4x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
  return %0 : tensor<2x4x!quant.uniform<i8:f32:0, {0.5, 0.25}>>
}
