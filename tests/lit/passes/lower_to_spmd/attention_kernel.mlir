// RUN: stablehlo-alpa-opt %s -alpa-lower-to-spmd | FileCheck %s

// The configuration of a device's call has the examples and the heads of its block.

// CHECK: @__cudnn$fmhaSoftmax(%arg0, %arg1, %arg1)
// CHECK-SAME: \22dimensions\22:[\222\22,\223\22,\228\22,\229\22]
// CHECK-SAME: (tensor<2x8x3x16xbf16>, tensor<2x9x1x16xbf16>, tensor<2x9x1x16xbf16>) -> (tensor<2x3x8x16xbf16>, tensor<0xui8>)
module attributes {alpa.mesh = #alpa.mesh<["x"=2, "y"=2]>} {
  func.func @main(%q: tensor<4x8x6x16xbf16> {alpa.sharding = #alpa.sharding<S0RS1R>}, %k: tensor<4x9x2x16xbf16> {alpa.sharding = #alpa.sharding<S0RS1R>}) -> (tensor<4x6x8x16xbf16> {alpa.sharding = #alpa.sharding<S0S1RR>}) {
    %0:2 = stablehlo.custom_call @__cudnn$fmhaSoftmax(%q, %k, %k) {backend_config = "{\22cudnn_fmha_backend_config\22: {\22mask_type\22: \22NO_MASK\22, \22intermediate_tensor_shape\22: {\22dimensions\22: [\224\22, \226\22, \228\22, \229\22]}, \22bmm1_dot_dimension_numbers\22: {\22lhs_batch_dimensions\22: [\220\22, \222\22]}}}", alpa.operands = [#alpa.sharding<S0RS1R>, #alpa.sharding<S0RS1R>, #alpa.sharding<S0RS1R>], alpa.results = [#alpa.sharding<S0S1RR>, #alpa.sharding<R>], alpa.strategy = #alpa.strategy<a=[0], b=[1]>} : (tensor<4x8x6x16xbf16>, tensor<4x9x2x16xbf16>, tensor<4x9x2x16xbf16>) -> (tensor<4x6x8x16xbf16>, tensor<0xui8>)
    return {alpa.operands = [#alpa.sharding<S0S1RR>], alpa.results = []} %0#0 : tensor<4x6x8x16xbf16>
  }
}
