//===- StablehloLinearAlgebra.td - products, FFT, solvers -----------------===//

#ifndef STABLEHLO_DIALECT_LINEAR_ALGEBRA
#define STABLEHLO_DIALECT_LINEAR_ALGEBRA

include "stablehlo/dialect/StablehloBase.td"

def HLO_DotOp : HLO_Op<"dot", [Pure]> {
  let arguments = (ins HLO_Tensor:$lhs, HLO_Tensor:$rhs,
    OptionalAttr<HLO_PrecisionConfig>:$precision_config);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `` custom<PrecisionConfig>($precision_config) attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def HLO_DotGeneralOp : HLO_Op<"dot_general", [Pure]> {
  let arguments = (ins HLO_Tensor:$lhs, HLO_Tensor:$rhs,
    HLO_DotDimensionNumbers:$dot_dimension_numbers,
    OptionalAttr<HLO_PrecisionConfig>:$precision_config,
    OptionalAttr<HLO_DotAlgorithm>:$algorithm);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `,`
    custom<DotParameters>($dot_dimension_numbers, $precision_config, $algorithm)
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def HLO_ConvolutionOp : HLO_Op<"convolution", [Pure]> {
  let arguments = (ins HLO_Tensor:$lhs, HLO_Tensor:$rhs,
    OptionalAttr<DenseI64ArrayAttr>:$window_strides,
    OptionalAttr<I64ElementsAttr>:$padding,
    OptionalAttr<DenseI64ArrayAttr>:$lhs_dilation,
    OptionalAttr<DenseI64ArrayAttr>:$rhs_dilation,
    OptionalAttr<DenseBoolArrayAttr>:$window_reversal,
    HLO_ConvDimensionNumbers:$dimension_numbers,
    I64Attr:$feature_group_count, I64Attr:$batch_group_count,
    OptionalAttr<HLO_PrecisionConfig>:$precision_config);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    `(` operands `)` `dim_numbers` `=` custom<ConvolutionDimensions>($dimension_numbers) `,`
    `window` `=` `{` custom<WindowAttributes>($window_strides, $padding, $lhs_dilation,
      $rhs_dilation, $window_reversal) `}`
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def HLO_FftOp : HLO_Op<"fft", [Pure]> {
  let arguments = (ins HLO_Tensor:$operand, HLO_FftTypeAttr:$fft_type,
    DenseI64ArrayAttr:$fft_length);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand `,` `type` `=` custom<EnumKeyword>($fft_type) `,` `length` `=` $fft_length
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def HLO_CholeskyOp : HLO_Op<"cholesky", [Pure, SameOperandsAndResultType]> {
  let arguments = (ins HLO_Tensor:$a, DefaultValuedOptionalAttr<BoolAttr, "false">:$lower);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $a (`,` `lower` `=` $lower^)? attr-dict `:`
    custom<SameOperandsAndResultType>(type($a), type($result))
  }];
  let hasVerifier = 1;
}

def HLO_TriangularSolveOp : HLO_Op<"triangular_solve", [Pure]> {
  let arguments = (ins HLO_Tensor:$a, HLO_Tensor:$b, BoolAttr:$left_side, BoolAttr:$lower,
    BoolAttr:$unit_diagonal, HLO_TransposeAttr:$transpose_a);
  let results = (outs HLO_Tensor:$result);
  let hasVerifier = 1;
}

def HLO_RngOp : HLO_Op<"rng"> {
  let summary = "random numbers; not pure: two calls differ";
  let arguments = (ins HLO_Tensor:$a, HLO_Tensor:$b, HLO_Tensor:$shape,
    HLO_RngDistributionAttr:$rng_distribution);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $a `,` $b `,` $shape `,` `distribution` `=` custom<EnumKeyword>($rng_distribution)
    attr-dict `:` functional-type(operands, results)
  }];
}

def HLO_RngBitGeneratorOp : HLO_Op<"rng_bit_generator", [Pure, HLO_NamesResults]> {
  let arguments = (ins HLO_RngAlgorithmAttr:$rng_algorithm, HLO_Tensor:$initial_state);
  let results = (outs HLO_Tensor:$output_state, HLO_Tensor:$output);
  let assemblyFormat = [{
    $initial_state `,` `algorithm` `=` custom<EnumKeyword>($rng_algorithm)
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // STABLEHLO_DIALECT_LINEAR_ALGEBRA
