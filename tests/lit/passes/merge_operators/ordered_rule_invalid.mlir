// RUN: stablehlo-alpa-opt %s -split-input-file -alpa-merge-operators -verify-diagnostics -allow-unregistered-dialect

// Only an operator's own local form knows what is exchanged along an ordered loop.

func.func @main(%a: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // expected-error @below {{sharding rule orders factor b, along which the operator itself exchanges nothing}}
  %0 = "other.scan"(%a) {alpa.rule = #alpa.rule<([a, b]) -> ([a, b]) {a, b=ordered}>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}

// -----

func.func @main(%a: tensor<64x64xf32>) -> tensor<64x64xf32> {
  // expected-error @below {{sharding rule orders factor a, along which the operator itself exchanges nothing}}
  %0 = stablehlo.custom_call @scan(%a) {alpa.rule = #alpa.rule<([a, b]) -> ([a, b]) {a=ordered, b}>} : (tensor<64x64xf32>) -> tensor<64x64xf32>
  return %0 : tensor<64x64xf32>
}
