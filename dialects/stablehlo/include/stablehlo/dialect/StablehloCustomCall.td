//===- StablehloCustomCall.td - calls into the runtime --------------------===//

#ifndef STABLEHLO_DIALECT_CUSTOM_CALL
#define STABLEHLO_DIALECT_CUSTOM_CALL

include "mlir/IR/SymbolInterfaces.td"
include "stablehlo/dialect/StablehloBase.td"

def HLO_CustomCallOp : HLO_Op<"custom_call",
    [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "call of a function of the backend";
  let description = [{
    Free of side effects unless `has_side_effect` says otherwise.

    ```
    %0:2 = stablehlo.custom_call @Qr(%arg0) {backend_config = ""}
        : (tensor<5x5xf32>) -> (tensor<5x5xf32>, tensor<5xf32>)
    ```
  }];
  let arguments = (ins Variadic<HLO_CustomCallValue>:$inputs, StrAttr:$call_target_name,
    DefaultValuedOptionalAttr<BoolAttr, "false">:$has_side_effect,
    OptionalAttr<AnyAttrOf<[StrAttr, DictionaryAttr]>>:$backend_config,
    DefaultValuedOptionalAttr<HLO_CustomCallApiVersion,
      "::mlir::stablehlo::CustomCallApiVersion::API_VERSION_ORIGINAL">:$api_version,
    DefaultValuedOptionalAttr<
      TypedArrayAttrBase<FlatSymbolRefAttr, "array of symbols">, "{}">:$called_computations,
    OptionalAttr<HLO_ArrayOfLayoutAttr>:$operand_layouts,
    OptionalAttr<HLO_ArrayOfLayoutAttr>:$result_layouts,
    DefaultValuedOptionalAttr<
      TypedArrayAttrBase<HLO_OutputOperandAlias, "array of output operand aliases">, "{}">
      :$output_operand_aliases);
  let results = (outs Variadic<HLO_CustomCallValue>);
  let hasVerifier = 1;
  let assemblyFormat = [{
    custom<CustomCallTarget>($call_target_name) `(` $inputs `)` attr-dict `:`
    functional-type(operands, results)
  }];
}

def HLO_CompositeOp : HLO_Op<"composite",
    [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "an operation that a function of the module defines";
  let description = [{
    ```
    %0 = stablehlo.composite "my.relu" %arg0 {decomposition = @relu}
        : (tensor<5xf32>) -> tensor<5xf32>
    ```
  }];
  let arguments = (ins
    Variadic<HLO_TensorOrPerAxisQuantizedTensorOrTokenOrTuple>:$inputs, StrAttr:$name,
    DefaultValuedOptionalAttr<DictionaryAttr, "{}">:$composite_attributes,
    FlatSymbolRefAttr:$decomposition,
    DefaultValuedOptionalAttr<I32Attr, "0">:$version);
  let results = (outs Variadic<HLO_TensorOrPerAxisQuantizedTensorOrTokenOrTuple>);
  let assemblyFormat = "$name $inputs attr-dict `:` functional-type(operands, results)";
}

#endif // STABLEHLO_DIALECT_CUSTOM_CALL
