// RUN: stablehlo-alpa-opt %s -alpa-print-sharding-rules -verify-diagnostics -o /dev/null

func.func @fft(%a: tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>> {
  // expected-remark @below {{#alpa.rule<([a, b]) -> ([a, c]) {a=4, b=8:replicated, c=8:replicated} linear(0) flops=480> leader}}
  %0 = stablehlo.fft %a, type = FFT, length = [8] : (tensor<4x8xcomplex<f32>>) -> tensor<4x8xcomplex<f32>>
  return %0 : tensor<4x8xcomplex<f32>>
}

func.func @cholesky(%a: tensor<4x3x3xf32>) -> tensor<4x3x3xf32> {
  // expected-remark @below {{#alpa.rule<([a, b, c]) -> ([a, d, e]) {a=4, b=3:replicated, c=3:replicated, d=3:replicated, e=3:replicated} flops=36> leader}}
  %0 = stablehlo.cholesky %a, lower = true : tensor<4x3x3xf32>
  return %0 : tensor<4x3x3xf32>
}

func.func @triangular_solve(%a: tensor<4x3x3xf32>, %b: tensor<4x3x5xf32>) -> tensor<4x3x5xf32> {
  // expected-remark @below {{#alpa.rule<([a, c, d], [a, e, b]) -> ([a, f, b]) {a=4, b=5, c=3:replicated, d=3:replicated, e=3:replicated, f=3:replicated} algebraic(1) flops=180> leader}}
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<4x3x3xf32>, tensor<4x3x5xf32>) -> tensor<4x3x5xf32>
  return %0 : tensor<4x3x5xf32>
}

// Nothing is known of a matrix of unknown size.
func.func @dynamic_triangular_solve(%a: tensor<2x3x?xf32>, %b: tensor<2x3x3xf32>) -> tensor<2x3x3xf32> {
  // expected-remark @below {{#alpa.rule<([], [a, b, c]) -> ([d, e, f]) {a=2:replicated, b=3:replicated, c=3:replicated, d=2:replicated, e=3:replicated, f=3:replicated}> leader}}
  %0 = "stablehlo.triangular_solve"(%a, %b) <{left_side = true, lower = true, transpose_a = #stablehlo<transpose NO_TRANSPOSE>, unit_diagonal = false}> : (tensor<2x3x?xf32>, tensor<2x3x3xf32>) -> tensor<2x3x3xf32>
  return %0 : tensor<2x3x3xf32>
}
