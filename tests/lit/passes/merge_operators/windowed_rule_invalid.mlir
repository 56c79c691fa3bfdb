// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-merge-operators -verify-diagnostics -allow-unregistered-dialect

// Only an operator's own local form fetches the rows of neighbours.

func.func @main(%a: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // expected-error @below {{sharding rule has a window along factor b, along which the operator itself exchanges nothing}}
  %0 = "other.blur"(%a) {alpa.rule = #alpa.rule<([a, b]) -> ([a, b]) {a, b=windowed}>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// -----

// A convolution whose blocks need no neighbours fetches nothing.

func.func @main(%a: tensor<2x64x3xf32>, %k: tensor<1x3x5xf32>) -> tensor<2x64x5xf32> {
  // expected-error @below {{sharding rule has a window along factor d, along which the operator itself exchanges nothing}}
  %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, f]x[0, i, o]->[b, 0, f], window = {} {alpa.rule = #alpa.rule<([a, d, c], [1, c, b]) -> ([a, d, b]) {a=2, b=5, c=3:sum, d=64:windowed}>, batch_group_count = 1 : i64, feature_group_count = 1 : i64} : (tensor<2x64x3xf32>, tensor<1x3x5xf32>) -> tensor<2x64x5xf32>
  return %0 : tensor<2x64x5xf32>
}
