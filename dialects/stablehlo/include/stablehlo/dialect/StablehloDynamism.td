//===- StablehloDynamism.td - sizes that are values -----------------------===//

#ifndef STABLEHLO_DIALECT_DYNAMISM
#define STABLEHLO_DIALECT_DYNAMISM

include "stablehlo/dialect/StablehloBase.td"

// The operand that holds sizes has one entry for each dimension. What a constant
// one says, the types must agree with.

def HLO_GetDimensionSizeOp : HLO_Op<"get_dimension_size", [Pure]> {
  let arguments = (ins HLO_TensorOrPerAxisQuantizedTensor:$operand, HLO_DimAttr:$dimension);
  let results = (outs HLO_I32Scalar:$result);
  let assemblyFormat = [{
    $operand `,` `dim` `=` $dimension attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def HLO_SetDimensionSizeOp : HLO_Op<"set_dimension_size", [Pure]> {
  let arguments = (ins HLO_Tensor:$operand, HLO_I32Tensor:$size, HLO_DimAttr:$dimension);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand `,` $size `,` `dim` `=` $dimension attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def HLO_DynamicIotaOp : HLO_Op<"dynamic_iota", [Pure]> {
  let arguments = (ins HLO_StaticDimensionTensor:$output_shape, HLO_DimAttr:$iota_dimension);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $output_shape `,` `dim` `=` $iota_dimension attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def HLO_DynamicReshapeOp : HLO_Op<"dynamic_reshape", [Pure]> {
  let arguments = (ins HLO_TensorOrPerAxisQuantizedTensor:$operand,
    HLO_StaticDimensionTensor:$output_shape);
  let results = (outs HLO_TensorOrPerAxisQuantizedTensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def HLO_DynamicBroadcastInDimOp : HLO_Op<"dynamic_broadcast_in_dim", [Pure]> {
  let arguments = (ins HLO_TensorOrPerAxisQuantizedTensor:$operand,
    HLO_StaticDimensionTensor:$output_dimensions, DenseI64ArrayAttr:$broadcast_dimensions,
    OptionalAttr<DenseI64ArrayAttr>:$known_expanding_dimensions,
    OptionalAttr<DenseI64ArrayAttr>:$known_nonexpanding_dimensions);
  let results = (outs HLO_TensorOrPerAxisQuantizedTensor:$result);
  let assemblyFormat = [{
    $operand `,` $output_dimensions `,` `dims` `=` $broadcast_dimensions attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def HLO_RealDynamicSliceOp : HLO_Op<"real_dynamic_slice",
    [Pure, AllElementTypesMatch<["operand", "result"]>,
     AllTypesMatch<["start_indices", "limit_indices", "strides"]>]> {
  let arguments = (ins HLO_Tensor:$operand, HLO_DimensionTensor:$start_indices,
    HLO_DimensionTensor:$limit_indices, HLO_DimensionTensor:$strides);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def HLO_DynamicPadOp : HLO_Op<"dynamic_pad",
    [Pure, AllElementTypesMatch<["operand", "padding_value", "result"]>,
     AllTypesMatch<["edge_padding_low", "edge_padding_high", "interior_padding"]>,
     AllRanksMatch<["operand", "result"]>]> {
  let arguments = (ins HLO_Tensor:$operand, HLO_ScalarTensor:$padding_value,
    HLO_StaticDimensionTensor:$edge_padding_low, HLO_StaticDimensionTensor:$edge_padding_high,
    HLO_StaticDimensionTensor:$interior_padding);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def HLO_DynamicGatherOp : HLO_Op<"dynamic_gather", [Pure]> {
  let arguments = (ins HLO_Tensor:$operand, HLO_IntTensor:$start_indices,
    HLO_Static1DIntTensor:$slice_sizes, HLO_GatherDimensionNumbers:$dimension_numbers,
    DefaultValuedOptionalAttr<BoolAttr, "false">:$indices_are_sorted);
  let results = (outs HLO_Tensor:$result);
  let hasVerifier = 1;
}

def HLO_DynamicConvOp : HLO_Op<"dynamic_conv", [Pure]> {
  let arguments = (ins HLO_Tensor:$lhs, HLO_Tensor:$rhs, HLO_Static2DIntTensor:$padding,
    OptionalAttr<DenseI64ArrayAttr>:$window_strides,
    OptionalAttr<DenseI64ArrayAttr>:$lhs_dilation,
    OptionalAttr<DenseI64ArrayAttr>:$rhs_dilation,
    OptionalAttr<DenseBoolArrayAttr>:$window_reversal,
    HLO_ConvDimensionNumbers:$dimension_numbers,
    HLO_CountAttr:$feature_group_count, HLO_CountAttr:$batch_group_count,
    OptionalAttr<HLO_PrecisionConfig>:$precision_config);
  let results = (outs HLO_Tensor:$result);
  let hasVerifier = 1;
}

#endif // STABLEHLO_DIALECT_DYNAMISM
