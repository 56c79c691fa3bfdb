//===- StablehloDataMovement.td - shapes, slices, gathers -----------------===//

#ifndef STABLEHLO_DIALECT_DATA_MOVEMENT
#define STABLEHLO_DIALECT_DATA_MOVEMENT

include "stablehlo/dialect/StablehloBase.td"

def HLO_ConstantOp : HLO_Op<"constant", [Pure, ConstantLike, HLO_NamesResults]> {
  let arguments = (ins ElementsAttr:$value);
  let results = (outs HLO_StaticShapeTensorOrPerAxisQuantizedTensor:$output);
  let builders = [OpBuilder<(ins "::mlir::Attribute":$value)>];
  let hasCustomAssemblyFormat = 1;
  let hasFolder = 1;
  let hasVerifier = 1;
}

def HLO_IotaOp : HLO_Op<"iota", [Pure]> {
  let arguments = (ins HLO_DimAttr:$iota_dimension);
  let results = (outs HLO_StaticShapeIntFpComplexOrQuantizedTensor:$output);
  let assemblyFormat = "`dim` `=` $iota_dimension attr-dict `:` type($output)";
  let hasVerifier = 1;
}

def HLO_ReshapeOp : HLO_UnaryFunctional<"reshape", HLO_TensorOrPerAxisQuantizedTensor,
    HLO_StaticShapeTensorPerAxisQuantizedTensorOrBoundedTensor,
    [HLO_CompatibleOperandsAndResultElementType]> {
  let hasFolder = 1;
  let hasVerifier = 1;
}
def HLO_BitcastConvertOp : HLO_UnaryFunctional<"bitcast_convert"> {
  let hasVerifier = 1;
}

def HLO_TransposeOp : HLO_Op<"transpose",
    [Pure, HLO_CompatibleOperandsAndResultElementType]> {
  let arguments = (ins HLO_TensorOrPerAxisQuantizedTensor:$operand,
    DenseI64ArrayAttr:$permutation);
  let results = (outs HLO_TensorOrPerAxisQuantizedTensor:$result);
  let assemblyFormat = [{
    $operand `,` `dims` `=` $permutation attr-dict `:` functional-type(operands, results)
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

def HLO_BroadcastOp : HLO_Op<"broadcast", [Pure, SameOperandsAndResultElementType]> {
  let arguments = (ins HLO_Tensor:$operand, DenseI64ArrayAttr:$broadcast_sizes);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand `,` `sizes` `=` $broadcast_sizes attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def HLO_BroadcastInDimOp : HLO_Op<"broadcast_in_dim",
    [Pure, HLO_CompatibleOperandsAndResultElementType]> {
  let arguments = (ins HLO_TensorOrPerAxisQuantizedTensor:$operand,
    DenseI64ArrayAttr:$broadcast_dimensions);
  let results = (outs HLO_StaticShapeTensorPerAxisQuantizedTensorOrBoundedTensor:$result);
  let assemblyFormat = [{
    $operand `,` `dims` `=` $broadcast_dimensions attr-dict `:`
    functional-type(operands, results)
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

def HLO_ConcatenateOp : HLO_Op<"concatenate", [Pure]> {
  let arguments = (ins Variadic<HLO_Tensor>:$inputs, HLO_DimAttr:$dimension);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    custom<VariadicOperandWithAttribute>($inputs) `dim` `=` $dimension attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def HLO_ReverseOp : HLO_InferredOp<"reverse", [Pure]> {
  let arguments = (ins HLO_Tensor:$operand, DenseI64ArrayAttr:$dimensions);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand `,` `dims` `=` $dimensions attr-dict `:`
    custom<SameOperandsAndResultType>(type($operand), type($result))
  }];
  let hasVerifier = 1;
}

def HLO_SliceOp : HLO_Op<"slice", [Pure]> {
  let arguments = (ins HLO_Tensor:$operand, DenseI64ArrayAttr:$start_indices,
    DenseI64ArrayAttr:$limit_indices, DenseI64ArrayAttr:$strides);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand custom<SliceRanges>($start_indices, $limit_indices, $strides) attr-dict `:`
    functional-type(operands, results)
  }];
  let hasFolder = 1;
  let hasVerifier = 1;
}

def HLO_DynamicSliceOp : HLO_Op<"dynamic_slice", [Pure]> {
  let arguments = (ins HLO_Tensor:$operand, Variadic<HLO_ScalarIntTensor>:$start_indices,
    DenseI64ArrayAttr:$slice_sizes);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand `,` custom<VariadicOperandWithAttribute>($start_indices) `sizes` `=` $slice_sizes
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def HLO_DynamicUpdateSliceOp : HLO_Op<"dynamic_update_slice", [Pure]> {
  let arguments = (ins HLO_Tensor:$operand, HLO_Tensor:$update,
    Variadic<HLO_ScalarIntTensor>:$start_indices);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
  let hasVerifier = 1;
}

def HLO_PadOp : HLO_Op<"pad", [Pure]> {
  let arguments = (ins HLO_Tensor:$operand, HLO_ScalarTensor:$padding_value,
    DenseI64ArrayAttr:$edge_padding_low, DenseI64ArrayAttr:$edge_padding_high,
    DenseI64ArrayAttr:$interior_padding);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand `,` $padding_value `,` `low` `=` $edge_padding_low `,`
    `high` `=` $edge_padding_high `,` `interior` `=` $interior_padding attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def HLO_GatherOp : HLO_Op<"gather", [Pure]> {
  let arguments = (ins HLO_Tensor:$operand, HLO_IntTensor:$start_indices,
    HLO_GatherDimensionNumbers:$dimension_numbers, DenseI64ArrayAttr:$slice_sizes,
    DefaultValuedOptionalAttr<BoolAttr, "false">:$indices_are_sorted);
  let results = (outs HLO_Tensor:$result);
  let hasVerifier = 1;
}

def HLO_ScatterOp : HLO_RegionOp<"scatter", [SameVariadicOperandSize]> {
  let arguments = (ins Variadic<HLO_Tensor>:$inputs, HLO_IndexTensor:$scatter_indices,
    Variadic<HLO_Tensor>:$updates,
    HLO_ScatterDimensionNumbers:$scatter_dimension_numbers,
    DefaultValuedOptionalAttr<BoolAttr, "false">:$indices_are_sorted,
    DefaultValuedOptionalAttr<BoolAttr, "false">:$unique_indices);
  let results = (outs Variadic<HLO_Tensor>:$results);
  let regions = (region SizedRegion<1>:$update_computation);
  let hasVerifier = 1;
}

#endif // STABLEHLO_DIALECT_DATA_MOVEMENT
