//===- StablehloBase.td - dialect, attributes and operation classes -------===//

#ifndef STABLEHLO_DIALECT_BASE
#define STABLEHLO_DIALECT_BASE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/IR/TensorEncoding.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "stablehlo/dialect/StablehloTypes.td"

def Stablehlo_Dialect : Dialect {
  let name = "stablehlo";
  let cppNamespace = "::mlir::stablehlo";
  let summary = "StableHLO, with the operations of which this project reasons typed";
  let description = [{
    Operations, attributes and types that have no definition here are kept as
    text and printed as they came.
  }];
  let hasConstantMaterializer = 1;
  let dependentDialects = ["::mlir::quant::QuantDialect"];
  // Attributes and types without a definition become opaque ones.
  let useDefaultAttributePrinterParser = 0;
  let useDefaultTypePrinterParser = 0;
  let extraClassDeclaration = [{
    ::mlir::Attribute parseAttribute(::mlir::DialectAsmParser &parser,
                                     ::mlir::Type type) const override;
    void printAttribute(::mlir::Attribute attr,
                        ::mlir::DialectAsmPrinter &printer) const override;
    ::mlir::Type parseType(::mlir::DialectAsmParser &parser) const override;
    void printType(::mlir::Type type,
                   ::mlir::DialectAsmPrinter &printer) const override;
    void registerAttributes();
    void registerTypes();
    void registerElementwiseOps();
    void registerDataMovementOps();
    void registerReductionOps();
    void registerControlFlowOps();
    void registerLinearAlgebraOps();
    void registerCollectiveOps();
    void registerCustomCallOps();
    void registerDynamismOps();
    void registerNormalizationOps();
    void registerDeprecatedOps();
    void registerTransferOps();
  }];
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def StableHLO_Token : TypeDef<Stablehlo_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "orders operations with side effects";
}

//===----------------------------------------------------------------------===//
// Enumerations
//===----------------------------------------------------------------------===//

class HLO_Enum<string name, list<string> cases> : I32EnumAttr<name, "",
    !foreach(index, !range(0, !size(cases)),
             I32EnumAttrCase<cases[index], index>)> {
  let cppNamespace = "::mlir::stablehlo";
  let genSpecializedAttr = 0;
}
class HLO_EnumAttr<EnumInfo info, string mnemonic>
    : EnumAttr<Stablehlo_Dialect, info, mnemonic>;

def HLO_Precision : HLO_Enum<"Precision", ["DEFAULT", "HIGH", "HIGHEST"]>;
def HLO_PrecisionAttr : HLO_EnumAttr<HLO_Precision, "precision">;
def HLO_PrecisionConfig : TypedArrayAttrBase<HLO_PrecisionAttr, "array of precisions">;

def HLO_ComparisonDirection : HLO_Enum<"ComparisonDirection",
    ["EQ", "NE", "GE", "GT", "LE", "LT"]>;
def HLO_ComparisonDirectionAttr
    : HLO_EnumAttr<HLO_ComparisonDirection, "comparison_direction">;
def HLO_ComparisonType : HLO_Enum<"ComparisonType",
    ["NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"]>;
def HLO_ComparisonTypeAttr : HLO_EnumAttr<HLO_ComparisonType, "comparison_type">;

def HLO_FftType : HLO_Enum<"FftType", ["FFT", "IFFT", "RFFT", "IRFFT"]>;
def HLO_FftTypeAttr : HLO_EnumAttr<HLO_FftType, "fft_type">;

def HLO_Transpose : HLO_Enum<"Transpose",
    ["TRANSPOSE_INVALID", "NO_TRANSPOSE", "TRANSPOSE", "ADJOINT"]>;
def HLO_TransposeAttr : HLO_EnumAttr<HLO_Transpose, "transpose">;

def HLO_RngDistribution : I32EnumAttr<"RngDistribution", "", [
    I32EnumAttrCase<"UNIFORM", 1>, I32EnumAttrCase<"NORMAL", 2>]> {
  let cppNamespace = "::mlir::stablehlo";
  let genSpecializedAttr = 0;
}
def HLO_RngDistributionAttr : HLO_EnumAttr<HLO_RngDistribution, "rng_distribution">;
def HLO_RngAlgorithm : HLO_Enum<"RngAlgorithm", ["DEFAULT", "THREE_FRY", "PHILOX"]>;
def HLO_RngAlgorithmAttr : HLO_EnumAttr<HLO_RngAlgorithm, "rng_algorithm">;

def HLO_ResultAccuracyMode
    : HLO_Enum<"ResultAccuracyMode", ["DEFAULT", "HIGHEST", "TOLERANCE"]>;
def HLO_ResultAccuracyModeAttr
    : HLO_EnumAttr<HLO_ResultAccuracyMode, "result_accuracy_mode"> {
  let assemblyFormat = "`<` $value `>`";
}

// Printed as a plain `2 : i32`.
def HLO_CustomCallApiVersion : I32EnumAttr<"CustomCallApiVersion",
    "version of the interface of a custom call", [
    I32EnumAttrCase<"API_VERSION_UNSPECIFIED", 0>,
    I32EnumAttrCase<"API_VERSION_ORIGINAL", 1>,
    I32EnumAttrCase<"API_VERSION_STATUS_RETURNING", 2>,
    I32EnumAttrCase<"API_VERSION_STATUS_RETURNING_UNIFIED", 3>,
    I32EnumAttrCase<"API_VERSION_TYPED_FFI", 4>]> {
  let cppNamespace = "::mlir::stablehlo";
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class HLO_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Stablehlo_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def HLO_Dims : ArrayRefParameter<"int64_t"> {
  let parser = "::mlir::stablehlo::parseDims($_parser)";
  let printer = "::mlir::stablehlo::printDims($_printer, $_self)";
}

// `<lhs_batching_dimensions = [0], ...>`: fields in any order, those that are
// empty or 0 left out.
class HLO_DimensionNumbers<string name, string attrMnemonic> : HLO_Attr<name, attrMnemonic> {
  let hasCustomAssemblyFormat = 1;
}

def HLO_DotDimensionNumbers : HLO_DimensionNumbers<"DotDimensionNumbers", "dot"> {
  let parameters = (ins
    HLO_Dims:$lhsBatchingDimensions, HLO_Dims:$rhsBatchingDimensions,
    HLO_Dims:$lhsContractingDimensions, HLO_Dims:$rhsContractingDimensions);
}

def HLO_DotAlgorithm : HLO_Attr<"DotAlgorithm", "dot_algorithm"> {
  let parameters = (ins "::mlir::Type":$lhs_precision_type,
    "::mlir::Type":$rhs_precision_type, "::mlir::Type":$accumulation_type,
    "int64_t":$lhs_component_count, "int64_t":$rhs_component_count,
    "int64_t":$num_primitive_operations, "bool":$allow_imprecise_accumulation);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def HLO_GatherDimensionNumbers : HLO_DimensionNumbers<"GatherDimensionNumbers", "gather"> {
  let parameters = (ins
    HLO_Dims:$offsetDims, HLO_Dims:$collapsedSliceDims, HLO_Dims:$operandBatchingDims,
    HLO_Dims:$startIndicesBatchingDims, HLO_Dims:$startIndexMap, "int64_t":$indexVectorDim);
}

def HLO_ScatterDimensionNumbers : HLO_DimensionNumbers<"ScatterDimensionNumbers", "scatter"> {
  let parameters = (ins
    HLO_Dims:$updateWindowDims, HLO_Dims:$insertedWindowDims, HLO_Dims:$inputBatchingDims,
    HLO_Dims:$scatterIndicesBatchingDims, HLO_Dims:$scatterDimsToOperandDims,
    "int64_t":$indexVectorDim);
}

def HLO_ConvDimensionNumbers : HLO_DimensionNumbers<"ConvDimensionNumbers", "conv"> {
  let summary = "which dimensions of a convolution are batch, feature and space";
  let description = [{
    ```
    #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>
    ```

    Numbers that are no such lists stand behind `raw`:

    ```
    #stablehlo.conv<raw input_batch_dimension = 0, input_spatial_dimensions = [4], ...>
    ```
  }];
  let parameters = (ins
    "int64_t":$inputBatchDimension, "int64_t":$inputFeatureDimension,
    HLO_Dims:$inputSpatialDimensions,
    "int64_t":$kernelInputFeatureDimension, "int64_t":$kernelOutputFeatureDimension,
    HLO_Dims:$kernelSpatialDimensions,
    "int64_t":$outputBatchDimension, "int64_t":$outputFeatureDimension,
    HLO_Dims:$outputSpatialDimensions);
}

def HLO_ChannelHandle : HLO_Attr<"ChannelHandle", "channel_handle"> {
  let parameters = (ins "int64_t":$handle, "int64_t":$type);
  let assemblyFormat = "`<` struct(params) `>`";
}

def HLO_OutputOperandAlias : HLO_Attr<"OutputOperandAlias", "output_operand_alias"> {
  let parameters = (ins HLO_Dims:$output_tuple_indices, "int64_t":$operand_index,
    HLO_Dims:$operand_tuple_indices);
  let assemblyFormat = "`<` struct(params) `>`";
}

def HLO_TypeExtensions : HLO_Attr<"TypeExtensions", "bounds",
    [DeclareAttrInterfaceMethods<VerifiableTensorEncoding>]> {
  let summary = "bounds of the dynamic dimensions of a tensor, as its encoding";
  let description = [{
    ```
    tensor<?x8xf32, #stablehlo.bounds<16, ?>>
    ```

    An older form is read, too: `#stablehlo.type_extensions<bounds = [16, ?]>`.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$bounds);
  let hasCustomAssemblyFormat = 1;
}

def HLO_ResultAccuracy : HLO_Attr<"ResultAccuracy", "result_accuracy"> {
  let summary = "the error that a function may have";
  let description = [{
    **Constraints:**
     - Tolerances are not negative.
     - Tolerances other than 0 have the mode `TOLERANCE`.
  }];
  let parameters = (ins APFloatParameter<"">:$atol, APFloatParameter<"">:$rtol,
    "int64_t":$ulps, HLO_ResultAccuracyModeAttr:$mode);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let constBuilderCall =
    "::mlir::stablehlo::ResultAccuracyAttr::get($_builder.getContext(), $0)";
  let builders = [AttrBuilder<(ins "::mlir::stablehlo::ResultAccuracyMode":$mode)>];
}

def HLO_LayoutAttr : Attr<And<[IndexElementsAttr.predicate,
    CPred<"::llvm::cast<::mlir::DenseIntElementsAttr>($_self).getType().getRank() == 1">]>,
    "a 1D tensor of index type (layout)"> {
  let storageType = IndexElementsAttr.storageType;
  let returnType = IndexElementsAttr.returnType;
  let convertFromStorage = IndexElementsAttr.convertFromStorage;
}
def HLO_ArrayOfLayoutAttr : TypedArrayAttrBase<HLO_LayoutAttr, "array of layouts">;

def HLO_OptionalChannel : OptionalAttr<HLO_ChannelHandle>;
def HLO_DimAttr : ConfinedAttr<I64Attr, [IntNonNegative]>;
def HLO_CountAttr : ConfinedAttr<I64Attr, [IntPositive]>;

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

class HLO_Op<string mnemonic, list<Trait> traits = []>
    : Op<Stablehlo_Dialect, mnemonic, traits>;

// The result's type follows from the operands' types.
class HLO_InferredOp<string mnemonic, list<Trait> traits = []>
    : HLO_Op<mnemonic, [InferTypeOpInterface, HLO_HasCompatibleTypes] # traits> {
  let extraClassDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange lhs, ::mlir::TypeRange rhs) {
      return ::mlir::hlo::isCompatibleForHloTypeInference(lhs, rhs);
    }
  }];
}

// Operations whose text is `operands : (types) -> types`.
class HLO_UnaryFunctional<string mnemonic, Type type = HLO_TensorOrPerAxisQuantizedTensor,
                          Type resultType = type, list<Trait> traits = []>
    : HLO_Op<mnemonic, [Pure] # traits> {
  let arguments = (ins type:$operand);
  let results = (outs resultType:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

class HLO_RegionOp<string mnemonic, list<Trait> traits = []>
    : HLO_Op<mnemonic, !listconcat(
          [RecursiveMemoryEffects, SingleBlockImplicitTerminator<"ReturnOp">],
          traits)>;

def HLO_NamesResults
    : DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>;

#endif // STABLEHLO_DIALECT_BASE
