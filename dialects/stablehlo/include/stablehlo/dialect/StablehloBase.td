//===- StablehloBase.td - dialect, attributes and operation classes -------===//

#ifndef STABLEHLO_DIALECT_BASE
#define STABLEHLO_DIALECT_BASE

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Stablehlo_Dialect : Dialect {
  let name = "stablehlo";
  let cppNamespace = "::mlir::stablehlo";
  let summary = "StableHLO, with the operations of which this project reasons typed";
  let description = [{
    Operations, attributes and types that have no definition here are kept as
    text and printed as they came.
  }];
  let hasConstantMaterializer = 1;
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
  }];
}

//===----------------------------------------------------------------------===//
// Types
//===----------------------------------------------------------------------===//

def StableHLO_Token : TypeDef<Stablehlo_Dialect, "Token"> {
  let mnemonic = "token";
  let summary = "orders operations with side effects";
}

def HLO_IsPredOrInt : CPred<
    "::llvm::isa<::mlir::IntegerType, ::mlir::OpaqueType>("
    "::llvm::cast<::mlir::ShapedType>($_self).getElementType())">;

def HLO_Tensor : RankedTensorOf<[AnyType]>;
def HLO_PredTensor : RankedTensorOf<[I1]>;
def HLO_PredOrIntTensor : Type<And<[HLO_Tensor.predicate, HLO_IsPredOrInt]>,
    "ranked tensor of integers or booleans", "::mlir::RankedTensorType">;
def HLO_TensorOrToken : AnyTypeOf<[HLO_Tensor, StableHLO_Token]>;
def HLO_PredScalar : Type<And<[HLO_PredTensor.predicate,
    CPred<"::llvm::cast<::mlir::ShapedType>($_self).getRank() == 0">]>,
    "0-dimensional tensor of i1", "::mlir::RankedTensorType">;
def HLO_I32Scalar : Type<And<[RankedTensorOf<[I32]>.predicate,
    CPred<"::llvm::cast<::mlir::ShapedType>($_self).getRank() == 0">]>,
    "0-dimensional tensor of i32", "::mlir::RankedTensorType">;

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

class HLO_Attr<string name, string attrMnemonic> : AttrDef<Stablehlo_Dialect, name> {
  let mnemonic = attrMnemonic;
  let assemblyFormat = "`<` struct(params) `>`";
}

// A list of dimensions that is left out when it is empty.
def HLO_OptionalDims : OptionalArrayRefParameter<"int64_t"> {
  let parser = "::mlir::stablehlo::parseDims($_parser)";
  let printer = "::mlir::stablehlo::printDims($_printer, $_self)";
}
def HLO_Dims : ArrayRefParameter<"int64_t"> {
  let parser = "::mlir::stablehlo::parseDims($_parser)";
  let printer = "::mlir::stablehlo::printDims($_printer, $_self)";
}

def HLO_DotDimensionNumbers : HLO_Attr<"DotDimensionNumbers", "dot"> {
  let parameters = (ins
    HLO_OptionalDims:$lhs_batching_dimensions,
    HLO_OptionalDims:$rhs_batching_dimensions,
    HLO_OptionalDims:$lhs_contracting_dimensions,
    HLO_OptionalDims:$rhs_contracting_dimensions);
}

def HLO_DotAlgorithm : HLO_Attr<"DotAlgorithm", "dot_algorithm"> {
  let parameters = (ins "::mlir::Type":$lhs_precision_type,
    "::mlir::Type":$rhs_precision_type, "::mlir::Type":$accumulation_type,
    "int64_t":$lhs_component_count, "int64_t":$rhs_component_count,
    "int64_t":$num_primitive_operations, "bool":$allow_imprecise_accumulation);
}

def HLO_GatherDimensionNumbers : HLO_Attr<"GatherDimensionNumbers", "gather"> {
  let parameters = (ins
    HLO_OptionalDims:$offset_dims, HLO_OptionalDims:$collapsed_slice_dims,
    HLO_OptionalDims:$operand_batching_dims,
    HLO_OptionalDims:$start_indices_batching_dims,
    HLO_OptionalDims:$start_index_map,
    OptionalParameter<"int64_t">:$index_vector_dim);
}

def HLO_ScatterDimensionNumbers : HLO_Attr<"ScatterDimensionNumbers", "scatter"> {
  let parameters = (ins
    HLO_OptionalDims:$update_window_dims, HLO_OptionalDims:$inserted_window_dims,
    HLO_OptionalDims:$input_batching_dims,
    HLO_OptionalDims:$scatter_indices_batching_dims,
    HLO_OptionalDims:$scatter_dims_to_operand_dims,
    OptionalParameter<"int64_t">:$index_vector_dim);
}

def HLO_ConvDimensionNumbers : HLO_Attr<"ConvDimensionNumbers", "conv"> {
  let summary = "which dimensions of a convolution are batch, feature and space";
  let description = [{
    ```
    #stablehlo.conv<[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]>
    ```
  }];
  let parameters = (ins
    "int64_t":$inputBatchDimension, "int64_t":$inputFeatureDimension,
    ArrayRefParameter<"int64_t">:$inputSpatialDimensions,
    "int64_t":$kernelInputFeatureDimension, "int64_t":$kernelOutputFeatureDimension,
    ArrayRefParameter<"int64_t">:$kernelSpatialDimensions,
    "int64_t":$outputBatchDimension, "int64_t":$outputFeatureDimension,
    ArrayRefParameter<"int64_t">:$outputSpatialDimensions);
  let assemblyFormat = ?;
  let hasCustomAssemblyFormat = 1;
}

def HLO_ChannelHandle : HLO_Attr<"ChannelHandle", "channel_handle"> {
  let parameters = (ins "int64_t":$handle, "int64_t":$type);
}

def HLO_OutputOperandAlias : HLO_Attr<"OutputOperandAlias", "output_operand_alias"> {
  let parameters = (ins HLO_Dims:$output_tuple_indices, "int64_t":$operand_index,
    HLO_Dims:$operand_tuple_indices);
}

def HLO_OptionalChannel : OptionalAttr<HLO_ChannelHandle>;

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

class HLO_Op<string mnemonic, list<Trait> traits = []>
    : Op<Stablehlo_Dialect, mnemonic, traits>;

// Operations whose text is `operands : (types) -> types`.
class HLO_UnaryFunctional<string mnemonic, list<Trait> traits = []>
    : HLO_Op<mnemonic, !listconcat([Pure], traits)> {
  let arguments = (ins HLO_Tensor:$operand);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

class HLO_RegionOp<string mnemonic, list<Trait> traits = []>
    : HLO_Op<mnemonic, !listconcat(
          [RecursiveMemoryEffects, SingleBlockImplicitTerminator<"ReturnOp">],
          traits)>;

def HLO_NamesResults
    : DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>;

#endif // STABLEHLO_DIALECT_BASE
