//===- StablehloCustomCall.td - calls into the runtime --------------------===//

#ifndef STABLEHLO_DIALECT_CUSTOM_CALL
#define STABLEHLO_DIALECT_CUSTOM_CALL

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
  let arguments = (ins Variadic<AnyType>:$inputs, StrAttr:$call_target_name,
    DefaultValuedOptionalAttr<BoolAttr, "false">:$has_side_effect,
    OptionalAttr<AnyAttrOf<[StrAttr, DictionaryAttr]>>:$backend_config,
    DefaultValuedOptionalAttr<HLO_CustomCallApiVersion,
      "::mlir::stablehlo::CustomCallApiVersion::API_VERSION_ORIGINAL">:$api_version,
    DefaultValuedOptionalAttr<
      TypedArrayAttrBase<FlatSymbolRefAttr, "array of symbols">, "{}">:$called_computations,
    OptionalAttr<ArrayAttr>:$operand_layouts, OptionalAttr<ArrayAttr>:$result_layouts,
    OptionalAttr<TypedArrayAttrBase<HLO_OutputOperandAlias, "array of output operand aliases">>
      :$output_operand_aliases);
  let results = (outs Variadic<AnyType>);
  let assemblyFormat = [{
    custom<CustomCallTarget>($call_target_name) `(` $inputs `)` attr-dict `:`
    functional-type(operands, results)
  }];
}

#endif // STABLEHLO_DIALECT_CUSTOM_CALL
