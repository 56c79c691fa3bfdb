//===- StablehloControlFlow.td - regions that run or not ------------------===//

#ifndef STABLEHLO_DIALECT_CONTROL_FLOW
#define STABLEHLO_DIALECT_CONTROL_FLOW

include "stablehlo/dialect/StablehloBase.td"

def HLO_ReturnOp : HLO_Op<"return", [Pure, Terminator, ReturnLike]> {
  let arguments = (ins Variadic<HLO_TensorOrPerAxisQuantizedTensorOrTokenOrBuffer>:$results);
  let assemblyFormat = "$results attr-dict (`:` type($results)^)?";
  let builders = [OpBuilder<(ins), [{ }]>];
}

def HLO_WhileOp : HLO_RegionOp<"while", [OpAsmOpInterface]> {
  let arguments = (ins Variadic<HLO_TensorOrPerAxisQuantizedTensorOrTokenOrBuffer>:$operand);
  let results = (outs Variadic<HLO_TensorOrPerAxisQuantizedTensorOrTokenOrBuffer>);
  let regions = (region SizedRegion<1>:$cond, SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    void getAsmBlockArgumentNames(::mlir::Region &region,
                                  ::mlir::OpAsmSetValueNameFn setNameFn);
  }];
  let hasVerifier = 1;
}

def HLO_CaseOp : HLO_RegionOp<"case"> {
  let arguments = (ins HLO_I32Scalar:$index);
  let results = (outs Variadic<HLO_TensorOrPerAxisQuantizedTensorOrToken>);
  let regions = (region VariadicRegion<SizedRegion<1>>:$branches);
  let hasVerifier = 1;
}

def HLO_IfOp : HLO_RegionOp<"if"> {
  let arguments = (ins HLO_PredScalar:$pred);
  let results = (outs Variadic<HLO_TensorOrPerAxisQuantizedTensorOrToken>);
  let regions = (region SizedRegion<1>:$true_branch, SizedRegion<1>:$false_branch);
  let hasVerifier = 1;
}

def HLO_AfterAllOp : HLO_Op<"after_all", [Pure]> {
  let arguments = (ins Variadic<StableHLO_Token>:$inputs);
  let results = (outs StableHLO_Token:$result);
  let assemblyFormat = [{
    $inputs attr-dict `:` custom<VariadicSameOperandsAndResultType>(ref($inputs), type($inputs), type($result))
  }];
}

def HLO_CreateTokenOp : HLO_Op<"create_token", [Pure]> {
  let results = (outs StableHLO_Token:$output);
  let assemblyFormat = "attr-dict `:` type($output)";
}

def HLO_TupleOp : HLO_Op<"tuple", [Pure]> {
  let arguments = (ins
    Variadic<HLO_TensorOrPerAxisQuantizedTensorOrTokenOrTupleOrBuffer>:$val);
  let results = (outs HLO_Tuple:$result);
  let assemblyFormat = "$val attr-dict `:` custom<TupleOpType>(type($val), type($result))";
  let hasVerifier = 1;
}

def HLO_GetTupleElementOp : HLO_Op<"get_tuple_element", [Pure]> {
  let arguments = (ins HLO_Tuple:$operand,
    ConfinedAttr<I32Attr, [IntNonNegative]>:$index);
  let results = (outs HLO_TensorOrPerAxisQuantizedTensorOrTokenOrTupleOrBuffer:$result);
  let assemblyFormat = [{
    $operand `[` $index `]` attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

#endif // STABLEHLO_DIALECT_CONTROL_FLOW
