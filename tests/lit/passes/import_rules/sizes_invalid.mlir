// RUN: stablehlo-alpa-opt %s -allow-unregistered-dialect -alpa-import-rules -verify-diagnostics -split-input-file -o /dev/null

// A kernel that was compiled for its grid does not run on a block.
func.func @compiled(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-error @below {{no rule can split @__gpu$xla.gpu.triton: it is made for the sizes of the whole, which blocks do not have; say by stablehlo_alpa.kernel how the function around it is split, or call it in jax.shard_map}}
  %0 = stablehlo.custom_call @__gpu$xla.gpu.triton(%a) {alpa.rule = #alpa.rule<([a, b]) -> ([a, b]) {a=8, b=4}>} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}

// -----

func.func @written_by_others(%a: tensor<8x4xf32>) -> tensor<8x4xf32> {
  // expected-remark @below {{of @tpu_custom_call is left out: it is made for the sizes of the whole}}
  %0 = stablehlo.custom_call @tpu_custom_call(%a) {sdy.sharding_rule = #sdy.op_sharding_rule<([i, j])->([i, j]) {i=8, j=4}>} : (tensor<8x4xf32>) -> tensor<8x4xf32>
  return %0 : tensor<8x4xf32>
}
