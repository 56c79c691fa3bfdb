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
