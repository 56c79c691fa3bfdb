// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-print-sharding-rules -verify-diagnostics

// As many queries as keys: both are split along one sequence; the bias has all keys.
func.func @self(%q: tensor<2x8x4xf32>, %k: tensor<2x8x4xf32>, %v: tensor<2x8x4xf32>, %bias: tensor<8x8xf32>) -> tensor<2x8x4xf32> {
  // expected-remark @below {{#alpa.rule<([a, b, c], [a, b, c], [a, b, d], [b, e]) -> ([a, b, d], [a, b], [a, b]) {a=2, b=8:ordered, c=4:replicated, d=4:replicated, e=8:replicated} flops=2048>}}
  %o, %m, %l = "alpa.attention"(%q, %k, %v, %bias) <{batch = 1 : i64, block_bytes = 64 : i64, dims = [array<i64: 1, 2>], products = [{}, {}], weights = f32}> ({
  ^bb0(%s: tensor<2x8x8xf32>, %b: tensor<8x8xf32>):
    alpa.yield %s : tensor<2x8x8xf32>
  }) : (tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<8x8xf32>) -> (tensor<2x8x4xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
  return %o : tensor<2x8x4xf32>
}

// -----

// Fewer queries than keys, for groups of two heads: queries and heads are split, keys are not.
func.func @cross(%q: tensor<4x2x3xf32>, %k: tensor<8x3xf32>, %v: tensor<8x5xf32>) -> tensor<4x2x5xf32> {
  // expected-remark @below {{#alpa.rule<([a, b, d], [c, d], [c, e]) -> ([a, b, e], [a, b], [a, b]) {a=4, b=2, c=8:replicated, d=3:replicated, e=5:replicated, f=8:replicated} flops=1024>}}
  %o, %m, %l = "alpa.attention"(%q, %k, %v) <{batch = 0 : i64, block_bytes = 64 : i64, dims = [], products = [{}, {}], weights = f32}> ({
  ^bb0(%s: tensor<4x2x8xf32>):
    alpa.yield %s : tensor<4x2x8xf32>
  }) : (tensor<4x2x3xf32>, tensor<8x3xf32>, tensor<8x5xf32>) -> (tensor<4x2x5xf32>, tensor<4x2xf32>, tensor<4x2xf32>)
  return %o : tensor<4x2x5xf32>
}

// -----

// Gradients of keys are sums over the heads of a group: these are not split.
func.func @gradient(%q: tensor<2x8x3x4xf32>, %k: tensor<2x8x4xf32>, %v: tensor<2x8x4xf32>, %o: tensor<2x8x3x4xf32>, %m: tensor<2x8x3xf32>) -> tensor<2x8x3x4xf32> {
  // expected-remark @below {{#alpa.rule<([a, b, c, d], [a, b, d], [a, b, e], [a, b, c, e], [a, b, c], [a, b, c], [a, b, c, e]) -> ([a, b, c, d], [a, b, d], [a, b, e]) {a=2, b=8:ordered, c=3:replicated, d=4:replicated, e=4:replicated, f=8:replicated} flops=15360>}}
  %dq, %dk, %dv = "alpa.attention_gradient"(%q, %k, %v, %o, %m, %m, %o) <{batch = 1 : i64, block_bytes = 64 : i64, dims = [], products = [{}, {}, {}, {}, {}], weights = f32}> ({
  ^bb0(%s: tensor<2x8x3x8xf32>):
    alpa.yield %s : tensor<2x8x3x8xf32>
  }, {
  ^bb0(%g: tensor<2x8x3x8xf32>, %s: tensor<2x8x3x8xf32>):
    alpa.yield %g : tensor<2x8x3x8xf32>
  }) : (tensor<2x8x3x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>, tensor<2x8x3x4xf32>, tensor<2x8x3xf32>, tensor<2x8x3xf32>, tensor<2x8x3x4xf32>) -> (tensor<2x8x3x4xf32>, tensor<2x8x4xf32>, tensor<2x8x4xf32>)
  return %dq : tensor<2x8x3x4xf32>
}
