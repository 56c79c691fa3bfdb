// RUN: stablehlo-alpa-opt %s -alpa-print-sharding-rules -verify-diagnostics -o /dev/null

// A kernel that is made anew for its blocks has the rule that its author says.

func.func @rows(%a: tensor<8x4xf32>, %b: tensor<1x4xf32>) -> tensor<8x4xf32> {
  // expected-remark @below {{#alpa.rule<([a, b], [1, b]) -> ([a, b]) {a=8, b=4:replicated} flops=64> leader}}
  %0 = stablehlo.custom_call @alpa_kernel(%a, %b) {api_version = 4 : i32, backend_config = {index = 0 : i64, name = "norm", rule = #alpa.rule<([x, y], [1, y]) -> ([x, y]) {x=8, y=4:replicated} flops=64>}} : (tensor<8x4xf32>, tensor<1x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// What the second result lacks is exchanged by the author.
func.func @reduced(%a: tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>) {
  // expected-remark @below {{#alpa.rule<([a, b]) -> ([a, b], [b]) {a=8:ordered, b=4}> leader}}
  %0:2 = stablehlo.custom_call @alpa_kernel(%a) {api_version = 4 : i32, backend_config = {index = 0 : i64, name = "sums", rule = #alpa.rule<([x, y]) -> ([x, y], [y]) {x=8:ordered, y=4}>}} : (tensor<8x4xf32>) -> (tensor<8x4xf32>, tensor<4xf32>)
  return %0#0, %0#1 : tensor<8x4xf32>, tensor<4xf32>
}

// A rule of other sizes splits nothing.
func.func @other_sizes(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-remark @below {{#alpa.rule<([a, b]) -> ([c, d]) {a=8:replicated, b=4:replicated, c=8:replicated, d=4:replicated}> leader}}
  %0 = stablehlo.custom_call @alpa_kernel(%a) {api_version = 4 : i32, backend_config = {index = 0 : i64, name = "norm", rule = #alpa.rule<([x, y]) -> ([x, y]) {x=4, y=4}>}} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
