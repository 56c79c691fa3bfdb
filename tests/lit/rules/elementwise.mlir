// RUN: stablehlo-alpa-opt %s -alpa-print-sharding-rules -verify-diagnostics -o /dev/null

func.func @pointwise(%a: tensor<4x8xf32>, %b: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-remark @below {{#alpa.rule<([a, b], [a, b]) -> ([a, b]) {a=4, b=8} linear(0, 1)> follower}}
  %0 = stablehlo.add %a, %b : tensor<4x8xf32>
  // expected-remark @below {{#alpa.rule<([a, b], [a, b]) -> ([a, b]) {a=4, b=8} algebraic(0) algebraic(1)> follower}}
  %1 = stablehlo.multiply %0, %b : tensor<4x8xf32>
  // expected-remark @below {{#alpa.rule<([a, b], [a, b]) -> ([a, b]) {a=4, b=8} algebraic(0)> follower}}
  %2 = stablehlo.divide %1, %b : tensor<4x8xf32>
  // expected-remark @below {{#alpa.rule<([a, b]) -> ([a, b]) {a=4, b=8}> follower}}
  %3 = stablehlo.tanh %2 : tensor<4x8xf32>
  // expected-remark @below {{#alpa.rule<([a, b]) -> ([a, b]) {a=4, b=8}> follower}}
  %4 = chlo.erf %3 : tensor<4x8xf32> -> tensor<4x8xf32>
  return %4 : tensor<4x8xf32>
}

func.func @scalar_bounds(%lo: tensor<f32>, %x: tensor<4xf32>, %hi: tensor<f32>) -> tensor<4xf32> {
  // expected-remark @below {{#alpa.rule<([], [a], []) -> ([a]) {a=4}> follower}}
  %0 = stablehlo.clamp %lo, %x, %hi : (tensor<f32>, tensor<4xf32>, tensor<f32>) -> tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @scalar_predicate(%p: tensor<i1>, %x: tensor<4xf32>, %y: tensor<4xf32>) -> tensor<4xf32> {
  // expected-remark @below {{#alpa.rule<([], [a], [a]) -> ([a]) {a=4} linear(1, 2)> follower}}
  %0 = stablehlo.select %p, %x, %y : tensor<i1>, tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @masking(%p: tensor<4xi1>, %x: tensor<4xf32>) -> tensor<4xf32> {
  // expected-remark @below {{#alpa.rule<() -> ([a]) {a=4} linear()> rematerialized}}
  %zero = stablehlo.constant dense<0.0> : tensor<4xf32>
  // expected-remark @below {{#alpa.rule<([a], [a], [a]) -> ([a]) {a=4} linear(1, 2) linear(1)> follower}}
  %0 = stablehlo.select %p, %x, %zero : tensor<4xi1>, tensor<4xf32>
  return %0 : tensor<4xf32>
}

func.func @booleans_have_no_sum(%a: tensor<4xi1>, %b: tensor<4xi1>) -> tensor<4xi1> {
  // expected-remark @below {{#alpa.rule<([a], [a]) -> ([a]) {a=4}> follower}}
  %0 = stablehlo.add %a, %b : tensor<4xi1>
  return %0 : tensor<4xi1>
}

func.func @converting_wraps(%a: tensor<4xi32>, %b: tensor<4xf32>) -> tensor<4xbf16> {
  // expected-remark @below {{#alpa.rule<([a]) -> ([a]) {a=4}> follower}}
  %0 = stablehlo.convert %a : (tensor<4xi32>) -> tensor<4xi64>
  // expected-remark @below {{#alpa.rule<([a]) -> ([a]) {a=4} algebraic(0)> follower}}
  %1 = stablehlo.convert %b : (tensor<4xf32>) -> tensor<4xbf16>
  // expected-remark @below {{#alpa.rule<([a]) -> ([a]) {a=4} linear(0)> follower}}
  %2 = stablehlo.convert %1 : (tensor<4xbf16>) -> tensor<4xf32>
  // What is larger than f16 holds may cancel: nothing is linear here.
  // expected-remark @below {{#alpa.rule<([a]) -> ([a]) {a=4}> follower}}
  %3 = stablehlo.convert %1 : (tensor<4xbf16>) -> tensor<4xf16>
  // expected-remark @below {{#alpa.rule<([a]) -> ([a]) {a=4}> follower}}
  %4 = stablehlo.convert %b : (tensor<4xf32>) -> tensor<4xf16>
  // The other way round digits are lost, and no range.
  // expected-remark @below {{#alpa.rule<([a]) -> ([a]) {a=4} algebraic(0)> follower}}
  %5 = stablehlo.convert %3 : (tensor<4xf16>) -> tensor<4xbf16>
  return %1 : tensor<4xbf16>
}

// Shares may be multiplied by what is at most 1 and divided by what is at least 1.
func.func @bounded_factors(%p: tensor<4xi1>, %x: tensor<4xf32>, %n: tensor<4xi32>) -> tensor<4xf32> {
  // expected-remark @below {{#alpa.rule<() -> ([a]) {a=4}> rematerialized}}
  %half = stablehlo.constant dense<-0.5> : tensor<4xf32>
  // expected-remark @below {{#alpa.rule<() -> ([a]) {a=4}> rematerialized}}
  %two = stablehlo.constant dense<2.0> : tensor<4xf32>
  // expected-remark @below {{#alpa.rule<([a]) -> ([a]) {a=4}> follower}}
  %mask = stablehlo.convert %p : (tensor<4xi1>) -> tensor<4xf32>
  // expected-remark @below {{#alpa.rule<([a], [a]) -> ([a]) {a=4} algebraic(0) linear(1)> follower}}
  %0 = stablehlo.multiply %half, %x : tensor<4xf32>
  // expected-remark @below {{#alpa.rule<([a], [a]) -> ([a]) {a=4} algebraic(0) algebraic(1)> follower}}
  %1 = stablehlo.multiply %two, %x : tensor<4xf32>
  // expected-remark @below {{#alpa.rule<([a], [a]) -> ([a]) {a=4} linear(0) algebraic(1)> follower}}
  %2 = stablehlo.multiply %x, %mask : tensor<4xf32>
  // expected-remark @below {{#alpa.rule<([a], [a]) -> ([a]) {a=4} algebraic(0)> follower}}
  %3 = stablehlo.divide %x, %half : tensor<4xf32>
  // expected-remark @below {{#alpa.rule<([a], [a]) -> ([a]) {a=4} linear(0)> follower}}
  %4 = stablehlo.divide %x, %two : tensor<4xf32>
  // Integers wrap alike.
  // expected-remark @below {{#alpa.rule<([a], [a]) -> ([a]) {a=4} linear(0) linear(1)> follower}}
  %5 = stablehlo.multiply %n, %n : tensor<4xi32>
  return %4 : tensor<4xf32>
}

func.func @bitcast_widths(%a: tensor<4xi32>) -> tensor<4x2xi16> {
  // expected-remark @below {{#alpa.rule<([a]) -> ([a]) {a=4}> follower}}
  %0 = stablehlo.bitcast_convert %a : (tensor<4xi32>) -> tensor<4xf32>
  // expected-remark @below {{#alpa.rule<([a]) -> ([a, b]) {a=4, b=2:replicated}> follower}}
  %1 = stablehlo.bitcast_convert %0 : (tensor<4xf32>) -> tensor<4x2xi16>
  return %1 : tensor<4x2xi16>
}

func.func @barrier(%a: tensor<4xf32>, %b: tensor<2x3xi32>) -> (tensor<4xf32>, tensor<2x3xi32>) {
  // expected-remark @below {{#alpa.rule<([a], [b, c]) -> ([d], [e, f]) {a=4:replicated, b=2:replicated, c=3:replicated, d=4:replicated, e=2:replicated, f=3:replicated}> follower}}
  %0:2 = stablehlo.optimization_barrier %a, %b : tensor<4xf32>, tensor<2x3xi32>
  // expected-remark @below {{#alpa.rule<([a]) -> ([a]) {a=4} linear(0)> follower}}
  %1 = stablehlo.optimization_barrier %0#0 : tensor<4xf32>
  return %1, %0#1 : tensor<4xf32>, tensor<2x3xi32>
}

func.func @empty_dimension(%a: tensor<0x4xf32>) -> tensor<0x4xf32> {
  // expected-remark @below {{#alpa.rule<([a, b]) -> ([c, d]) {a=0:replicated, b=4:replicated, c=0:replicated, d=4:replicated}> follower}}
  %0 = stablehlo.negate %a : tensor<0x4xf32>
  return %0 : tensor<0x4xf32>
}

func.func @scalar(%a: tensor<f32>) -> tensor<f32> {
  // expected-remark @below {{#alpa.rule<([]) -> ([]) {} linear(0)> follower}}
  %0 = stablehlo.negate %a : tensor<f32>
  return %0 : tensor<f32>
}

func.func @chlo(%a: tensor<4xf32>, %z: tensor<4xcomplex<f32>>, %n: tensor<4xi32>) -> tensor<4xf32> {
  // expected-remark @below {{#alpa.rule<([a], [a]) -> ([a]) {a=4}> follower}}
  %0 = chlo.zeta %a, %a : tensor<4xf32>, tensor<4xf32> -> tensor<4xf32>
  // expected-remark @below {{#alpa.rule<([a]) -> ([a]) {a=4} linear(0)> follower}}
  %1 = chlo.conj %z : tensor<4xcomplex<f32>> -> tensor<4xcomplex<f32>>
  // expected-remark @below {{#alpa.rule<([a]) -> ([a]) {a=4}> follower}}
  %2 = chlo.is_inf %a : tensor<4xf32> -> tensor<4xi1>
  // expected-remark @below {{#alpa.rule<([a], [a]) -> ([a]) {a=4}> follower}}
  %3 = chlo.mulhi %n, %n : tensor<4xi32>, tensor<4xi32> -> tensor<4xi32>
  return %0 : tensor<4xf32>
}
