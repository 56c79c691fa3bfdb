// RUN: stablehlo-alpa-opt %s --alpa-merge-operators --verify-diagnostics -o /dev/null

// A remark says of which custom calls nothing is known.

func.func @main(%x: tensor<64x64xf32>) -> (tensor<64x64xf32>, tensor<64x64xf32>) {
  // expected-remark @below {{'stablehlo.custom_call' @my_kernel has no sharding rule and is replicated}}
  %0 = stablehlo.custom_call @my_kernel(%x) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  %1 = stablehlo.custom_call @mhlo.erf(%0) : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0, %1 : tensor<64x64xf32>, tensor<64x64xf32>
}
