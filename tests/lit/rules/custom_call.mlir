// RUN: stablehlo-alpa-opt %s -alpa-print-sharding-rules -verify-diagnostics -o /dev/null

func.func @unknown_target(%a: tensor<4x3x3xf32>) -> tensor<4x3x3xf32> {
  // expected-remark @below {{#alpa.rule<([a, b, c]) -> ([d, e, f]) {a=4:replicated, b=3:replicated, c=3:replicated, d=4:replicated, e=3:replicated, f=3:replicated}> leader}}
  %0 = stablehlo.custom_call @unknown(%a) : (tensor<4x3x3xf32>) -> tensor<4x3x3xf32>
  return %0 : tensor<4x3x3xf32>
}

func.func @declared_batch(%a: tensor<4x3x3xf32>) -> (tensor<4x3x3xf32>, tensor<4xi32>) {
  // expected-remark @below {{#alpa.rule<([a, b, c]) -> ([a, d, e], [a]) {a=4, b=3:replicated, c=3:replicated, d=3:replicated, e=3:replicated} flops=72> leader}}
  %0:2 = stablehlo.custom_call @lapack_sgetrf_ffi(%a) {mhlo.frontend_attributes = {num_batch_dims = "1"}} : (tensor<4x3x3xf32>) -> (tensor<4x3x3xf32>, tensor<4xi32>)
  return %0#0, %0#1 : tensor<4x3x3xf32>, tensor<4xi32>
}

func.func @pointwise_target(%a: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // expected-remark @below {{#alpa.rule<([a, b]) -> ([a, b]) {a=4, b=8}> follower}}
  %0 = stablehlo.custom_call @mhlo.erf(%a) : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0 : tensor<4x8xf32>
}
