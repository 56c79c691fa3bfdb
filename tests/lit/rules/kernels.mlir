// RUN: stablehlo-alpa-opt %s -alpa-print-sharding-rules -verify-diagnostics -o /dev/null

// XLA's own kernels of linear algebra do not say how many dimensions are a batch.
func.func @kernels_of_xla(%a: tensor<4x5x3xf32>) -> (tensor<4x5x3xf32>, tensor<4x3xf32>) {
  // expected-remark @below {{#alpa.rule<([a, b, c]) -> ([a, d, e], [a, f]) {a=4, b=5:replicated, c=3:replicated, d=5:replicated, e=3:replicated, f=3:replicated} flops=288> leader}}
  %0:2 = stablehlo.custom_call @Qr(%a) : (tensor<4x5x3xf32>) -> (tensor<4x5x3xf32>, tensor<4x3xf32>)
  return %0#0, %0#1 : tensor<4x5x3xf32>, tensor<4x3xf32>
}

func.func @without_a_batch(%a: tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<i32>) {
  // expected-remark @below {{#alpa.rule<([a, b]) -> ([c, d], []) {a=3:replicated, b=3:replicated, c=3:replicated, d=3:replicated} flops=9> leader}}
  %0:2 = stablehlo.custom_call @cusolver_potrf_ffi(%a) {mhlo.frontend_attributes = {num_batch_dims = "0"}} : (tensor<3x3xf32>) -> (tensor<3x3xf32>, tensor<i32>)
  return %0#0, %0#1 : tensor<3x3xf32>, tensor<i32>
}

// Right-hand sides are columns on the left, rows on the right.
func.func @sides(%a: tensor<2x3x3xf32>, %b: tensor<2x3x3xf32>) -> (tensor<2x3x3xf32>, tensor<2x3x3xf32>) {
  // expected-remark @below {{#alpa.rule<([a, c, d], [a, e, b]) -> ([a, f, b]) {a=2, b=3, c=3:replicated, d=3:replicated, e=3:replicated, f=3:replicated} algebraic(1) flops=54> leader}}
  %0 = stablehlo.custom_call @lapack_strsm_ffi(%a, %b) {mhlo.backend_config = {side = 76 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "1"}} : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  // expected-remark @below {{#alpa.rule<([a, c, d], [a, b, e]) -> ([a, b, f]) {a=2, b=3, c=3:replicated, d=3:replicated, e=3:replicated, f=3:replicated} algebraic(1) flops=54> leader}}
  %1 = stablehlo.custom_call @lapack_strsm_ffi(%a, %b) {mhlo.backend_config = {side = 82 : ui8}, mhlo.frontend_attributes = {num_batch_dims = "1"}} : (tensor<2x3x3xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  return %0, %1 : tensor<2x3x3xf32>, tensor<2x3x3xf32>
}

// One result is no function of a block: vectors that nobody asked for.
func.func @scalar_results(%a: tensor<4x3x3xf32>) -> tensor<4x3xf32> {
  // expected-remark @below {{#alpa.rule<([a, b, c]) -> ([d, e], []) {a=4:replicated, b=3:replicated, c=3:replicated, d=4:replicated, e=3:replicated} flops=2808> leader}}
  %0:2 = stablehlo.custom_call @cusolver_gesvd_ffi(%a) {mhlo.frontend_attributes = {num_batch_dims = "1"}} : (tensor<4x3x3xf32>) -> (tensor<4x3xf32>, tensor<f32>)
  return %0#0 : tensor<4x3xf32>
}

func.func @scalar_operands(%a: tensor<4x5x3xf32>, %c: tensor<4x5x5xf32>, %s: tensor<f32>) -> tensor<4x5x5xf32> {
  // expected-remark @below {{#alpa.rule<([a, b, c], [a, d, e], [], []) -> ([a, f, g]) {a=4, b=5:replicated, c=3:replicated, d=5:replicated, e=5:replicated, f=5:replicated, g=5:replicated} flops=300> leader}}
  %0 = stablehlo.custom_call @cusolver_syrk_ffi(%a, %c, %s, %s) : (tensor<4x5x3xf32>, tensor<4x5x5xf32>, tensor<f32>, tensor<f32>) -> tensor<4x5x5xf32>
  return %0 : tensor<4x5x5xf32>
}

func.func @bits(%a: tensor<4x8xui32>) -> (tensor<4x8xui32>, tensor<4x8xui32>) {
  // expected-remark @below {{#alpa.rule<([a, b], [a, b], [a, b], [a, b]) -> ([a, b], [a, b]) {a=4, b=8}> follower}}
  %0:2 = stablehlo.custom_call @cu_threefry2x32_ffi(%a, %a, %a, %a) : (tensor<4x8xui32>, tensor<4x8xui32>, tensor<4x8xui32>, tensor<4x8xui32>) -> (tensor<4x8xui32>, tensor<4x8xui32>)
  return %0#0, %0#1 : tensor<4x8xui32>, tensor<4x8xui32>
}

func.func @memory(%a: tensor<4x8xf32>) -> (tensor<4x8xf32>, tensor<4x8xf32>) {
  // expected-remark @below {{#alpa.rule<() -> ([a, b]) {a=4, b=8}> rematerialized}}
  %0 = stablehlo.custom_call @AllocateBuffer() : () -> tensor<4x8xf32>
  // expected-remark @below {{#alpa.rule<([a, b]) -> ([a, b]) {a=4, b=8}> follower}}
  %1 = stablehlo.custom_call @annotate_device_placement(%a) {has_side_effect = true, mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}} : (tensor<4x8xf32>) -> tensor<4x8xf32>
  return %0, %1 : tensor<4x8xf32>, tensor<4x8xf32>
}

func.func @top_k(%a: tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>) {
  // expected-remark @below {{#alpa.rule<([a, b]) -> ([a, c], [a, d]) {a=4, b=8:replicated, c=2:replicated, d=2:replicated}> leader}}
  %0:2 = stablehlo.custom_call @mhlo.topk(%a) {mhlo.attributes = {k = 2 : i64, largest = true}, mhlo.version = 1 : i64} : (tensor<4x8xf32>) -> (tensor<4x2xf32>, tensor<4x2xi32>)
  return %0#0, %0#1 : tensor<4x2xf32>, tensor<4x2xi32>
}

func.func @block_scaled_dot(%a: tensor<2x8x64xf8E4M3FN>, %b: tensor<2x4x64xf8E4M3FN>, %c: tensor<2x8x2xf8E8M0FNU>, %d: tensor<2x4x2xf8E8M0FNU>) -> tensor<2x8x4xf32> {
  // expected-remark @below {{#alpa.rule<([a, b, d], [a, c, e], [a, b, f], [a, c, g]) -> ([a, b, c]) {a=2, b=8, c=4, d=64:replicated, e=64:replicated, f=2:replicated, g=2:replicated} flops=8192> leader}}
  %0 = stablehlo.custom_call @__op$block_scaled_dot(%a, %b, %c, %d) : (tensor<2x8x64xf8E4M3FN>, tensor<2x4x64xf8E4M3FN>, tensor<2x8x2xf8E8M0FNU>, tensor<2x4x2xf8E8M0FNU>) -> tensor<2x8x4xf32>
  return %0 : tensor<2x8x4xf32>
}

// Three heads of queries for one of keys and values.
func.func @attention(%q: tensor<4x8x6x16xbf16>, %k: tensor<4x9x2x16xbf16>) -> tensor<4x6x8x16xbf16> {
  // expected-remark @below {{#alpa.rule<([a, d, (b c), f], [a, e, b, f], [a, e, b, g]) -> ([a, (b c), d, g], [h]) {a=4, b=2, c=3, d=8:replicated, e=9:replicated, f=16:replicated, g=16:replicated, h=0:replicated} flops=110592> leader}}
  %0:2 = stablehlo.custom_call @__cudnn$fmhaSoftmax(%q, %k, %k) {backend_config = "{\22cudnn_fmha_backend_config\22: {\22mask_type\22: \22NO_MASK\22, \22intermediate_tensor_shape\22: {\22dimensions\22: [\224\22, \226\22, \228\22, \229\22]}, \22bmm1_dot_dimension_numbers\22: {\22lhs_batch_dimensions\22: [\220\22, \222\22]}}}"} : (tensor<4x8x6x16xbf16>, tensor<4x9x2x16xbf16>, tensor<4x9x2x16xbf16>) -> (tensor<4x6x8x16xbf16>, tensor<0xui8>)
  return %0#0 : tensor<4x6x8x16xbf16>
}

// The bias of each head is that of all examples: its gradient is a sum over them, which no device has of a part.
func.func @gradient_of_attention(%q: tensor<4x8x6x16xbf16>, %k: tensor<4x9x2x16xbf16>, %l: tensor<4x6x8xf32>, %b: tensor<1x6x8x9xbf16>) -> tensor<4x6x8x16xbf16> {
  // expected-remark @below {{#alpa.rule<([a, d, (b c), f], [a, e, b, f], [a, e, b, g], [a, (b c), d], [a, d, (b c), g], [1, (b c), d, e], [a, d, (b c), g]) -> ([a, (b c), d, f], [a, b, e, f], [a, b, e, g], [1, (b c), d, e], [h]) {a=4:replicated, b=2, c=3:replicated, d=8:replicated, e=9:replicated, f=16:replicated, g=16:replicated, h=0:replicated} flops=138240> leader}}
  %0:5 = stablehlo.custom_call @__cudnn$fmhaScaleBiasSoftmaxBackward(%q, %k, %k, %l, %q, %b, %q) {backend_config = "{\22cudnn_fmha_backend_config\22: {\22mask_type\22: \22CAUSAL\22, \22intermediate_tensor_shape\22: {\22dimensions\22: [\224\22, \226\22, \228\22, \229\22]}, \22bmm2_grad_gemm2_dot_dimension_numbers\22: {\22lhs_batch_dimensions\22: [\220\22, \222\22]}}}"} : (tensor<4x8x6x16xbf16>, tensor<4x9x2x16xbf16>, tensor<4x9x2x16xbf16>, tensor<4x6x8xf32>, tensor<4x8x6x16xbf16>, tensor<1x6x8x9xbf16>, tensor<4x8x6x16xbf16>) -> (tensor<4x6x8x16xbf16>, tensor<4x2x9x16xbf16>, tensor<4x2x9x16xbf16>, tensor<1x6x8x9xbf16>, tensor<0xui8>)
  return %0#0 : tensor<4x6x8x16xbf16>
}

// With what the gradient reads of the softmax, and the lengths of sequences.
func.func @attention_for_a_gradient(%q: tensor<4x6x8x16xbf16>, %k: tensor<4x2x9x16xbf16>, %b: tensor<4x1x8x9xbf16>, %n: tensor<4xi32>) -> tensor<4x6x8x16xbf16> {
  // expected-remark @below {{#alpa.rule<([a, (b c), d, f], [a, b, e, f], [a, b, e, g], [a, 1, d, e], [a], [a]) -> ([a, (b c), d, g], [a, (b c), d], [h]) {a=4, b=2, c=3, d=8:replicated, e=9:replicated, f=16:replicated, g=16:replicated, h=0:replicated} flops=110592> leader}}
  %0:3 = stablehlo.custom_call @__cudnn$fmhaScaleBiasSoftmax(%q, %k, %k, %b, %n, %n) {backend_config = "{\22cudnn_fmha_backend_config\22: {\22mask_type\22: \22PADDING\22, \22intermediate_tensor_shape\22: {\22dimensions\22: [\224\22, \226\22, \228\22, \229\22]}, \22bmm1_dot_dimension_numbers\22: {\22lhs_batch_dimensions\22: [\220\22, \221\22]}}}"} : (tensor<4x6x8x16xbf16>, tensor<4x2x9x16xbf16>, tensor<4x2x9x16xbf16>, tensor<4x1x8x9xbf16>, tensor<4xi32>, tensor<4xi32>) -> (tensor<4x6x8x16xbf16>, tensor<4x6x8xf32>, tensor<0xui8>)
  return %0#0 : tensor<4x6x8x16xbf16>
}

// The configuration is that of five examples.
func.func @attention_of_other_sizes(%q: tensor<4x8x6x16xbf16>, %k: tensor<4x9x2x16xbf16>) -> tensor<4x6x8x16xbf16> {
  // expected-remark @below {{#alpa.rule<([a, b, c, d], [e, f, g, h], [i, j, k, l]) -> ([m, n, o, p], [q]) {a=4:replicated, b=8:replicated, c=6:replicated, d=16:replicated, e=4:replicated, f=9:replicated, g=2:replicated, h=16:replicated, i=4:replicated, j=9:replicated, k=2:replicated, l=16:replicated, m=4:replicated, n=6:replicated, o=8:replicated, p=16:replicated, q=0:replicated}> leader}}
  %0:2 = stablehlo.custom_call @__cudnn$fmhaSoftmax(%q, %k, %k) {backend_config = "{\22cudnn_fmha_backend_config\22: {\22mask_type\22: \22NO_MASK\22, \22intermediate_tensor_shape\22: {\22dimensions\22: [\225\22, \226\22, \228\22, \229\22]}, \22bmm1_dot_dimension_numbers\22: {\22lhs_batch_dimensions\22: [\220\22, \222\22]}}}"} : (tensor<4x8x6x16xbf16>, tensor<4x9x2x16xbf16>, tensor<4x9x2x16xbf16>) -> (tensor<4x6x8x16xbf16>, tensor<0xui8>)
  return %0#0 : tensor<4x6x8x16xbf16>
}

func.func @attention_that_is_not_read(%q: tensor<4x8x6x16xbf16>) -> tensor<4x6x8x16xbf16> {
  // expected-remark @below {{#alpa.rule<([a, b, c, d], [e, f, g, h], [i, j, k, l]) -> ([m, n, o, p], [q]) {a=4:replicated, b=8:replicated, c=6:replicated, d=16:replicated, e=4:replicated, f=8:replicated, g=6:replicated, h=16:replicated, i=4:replicated, j=8:replicated, k=6:replicated, l=16:replicated, m=4:replicated, n=6:replicated, o=8:replicated, p=16:replicated, q=0:replicated}> leader}}
  %0:2 = stablehlo.custom_call @__cudnn$fmhaSoftmax(%q, %q, %q) {backend_config = "{"} : (tensor<4x8x6x16xbf16>, tensor<4x8x6x16xbf16>, tensor<4x8x6x16xbf16>) -> (tensor<4x6x8x16xbf16>, tensor<0xui8>)
  return %0#0 : tensor<4x6x8x16xbf16>
}
