//===- StablehloLinearAlgebra.td - products, FFT, solvers -----------------===//

#ifndef STABLEHLO_DIALECT_LINEAR_ALGEBRA
#define STABLEHLO_DIALECT_LINEAR_ALGEBRA

include "stablehlo/dialect/StablehloBase.td"

def HLO_DotOp : HLO_Op<"dot", [Pure]> {
  let arguments = (ins HLO_Tensor:$lhs, HLO_TensorOrPerAxisQuantizedTensor:$rhs,
    OptionalAttr<HLO_PrecisionConfig>:$precision_config);
  let results = (outs HLO_TensorOrPerAxisQuantizedTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `` custom<PrecisionConfig>($precision_config) attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def HLO_DotGeneralOp : HLO_Op<"dot_general", [Pure]> {
  let arguments = (ins HLO_Tensor:$lhs, HLO_TensorOrPerAxisQuantizedTensor:$rhs,
    HLO_DotDimensionNumbers:$dot_dimension_numbers,
    OptionalAttr<HLO_PrecisionConfig>:$precision_config,
    OptionalAttr<HLO_DotAlgorithm>:$algorithm);
  let results = (outs HLO_TensorOrPerAxisQuantizedTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `,`
    custom<DotParameters>($dot_dimension_numbers, $precision_config, $algorithm)
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def HLO_ConvolutionOp : HLO_Op<"convolution", [Pure]> {
  let arguments = (ins HLO_Tensor:$lhs, HLO_TensorOrPerAxisQuantizedTensor:$rhs,
    OptionalAttr<DenseI64ArrayAttr>:$window_strides,
    OptionalAttr<I64ElementsAttr>:$padding,
    OptionalAttr<DenseI64ArrayAttr>:$lhs_dilation,
    OptionalAttr<DenseI64ArrayAttr>:$rhs_dilation,
    OptionalAttr<DenseBoolArrayAttr>:$window_reversal,
    HLO_ConvDimensionNumbers:$dimension_numbers,
    HLO_CountAttr:$feature_group_count, HLO_CountAttr:$batch_group_count,
    OptionalAttr<HLO_PrecisionConfig>:$precision_config);
  let results = (outs HLO_TensorOrPerAxisQuantizedTensor:$result);
  let assemblyFormat = [{
    `(` operands `)` `dim_numbers` `=` custom<ConvolutionDimensions>($dimension_numbers) `,`
    `window` `=` `{` custom<WindowAttributes>($window_strides, $padding, $lhs_dilation,
      $rhs_dilation, $window_reversal) `}`
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def HLO_FftOp : HLO_Op<"fft", [Pure]> {
  let arguments = (ins HLO_FpOrComplexTensor:$operand, HLO_FftTypeAttr:$fft_type,
    DenseI64ArrayAttr:$fft_length);
  let results = (outs HLO_FpOrComplexTensor:$result);
  let assemblyFormat = [{
    $operand `,` `type` `=` custom<EnumKeyword>($fft_type) `,` `length` `=` $fft_length
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def HLO_CholeskyOp : HLO_InferredOp<"cholesky", [Pure]> {
  let arguments = (ins HLO_FpComplexOrQuantizedIntTensor:$a,
    DefaultValuedOptionalAttr<BoolAttr, "false">:$lower);
  let results = (outs HLO_FpComplexOrQuantizedIntTensor:$result);
  let assemblyFormat = [{
    $a (`,` `lower` `=` $lower^)? attr-dict `:`
    custom<SameOperandsAndResultType>(type($a), type($result))
  }];
  let hasVerifier = 1;
}

def HLO_TriangularSolveOp : HLO_Op<"triangular_solve",
    [Pure, HLO_CompatibleOperandsAndResultElementType]> {
  let arguments = (ins HLO_FpOrComplexTensor:$a, HLO_FpOrComplexTensor:$b,
    BoolAttr:$left_side, BoolAttr:$lower, BoolAttr:$unit_diagonal,
    HLO_TransposeAttr:$transpose_a);
  let results = (outs HLO_FpOrComplexTensor:$result);
  let hasVerifier = 1;
}

def HLO_RngOp : HLO_Op<"rng", [AllElementTypesMatch<["a", "b", "result"]>]> {
  let summary = "random numbers; not pure: two calls differ";
  let arguments = (ins HLO_PredIntOrFpScalar:$a, HLO_PredIntOrFpScalar:$b,
    HLO_StaticDimensionTensor:$shape, HLO_RngDistributionAttr:$rng_distribution);
  let results = (outs HLO_PredIntOrFpTensor:$result);
  let hasVerifier = 1;
  let assemblyFormat = [{
    $a `,` $b `,` $shape `,` `distribution` `=` custom<EnumKeyword>($rng_distribution)
    attr-dict `:` functional-type(operands, results)
  }];
}

def HLO_RngBitGeneratorOp : HLO_Op<"rng_bit_generator", [Pure, HLO_NamesResults]> {
  let arguments = (ins HLO_RngAlgorithmAttr:$rng_algorithm, HLO_IntOrFpTensor:$initial_state);
  let results = (outs HLO_IntOrFpTensor:$output_state, HLO_StaticShapeIntOrFpTensor:$output);
  let assemblyFormat = [{
    $initial_state `,` `algorithm` `=` custom<EnumKeyword>($rng_algorithm)
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // STABLEHLO_DIALECT_LINEAR_ALGEBRA
