//===- ChloOps.td - operations that JAX emits beyond StableHLO ------------===//

#ifndef STABLEHLO_DIALECT_CHLO_OPS
#define STABLEHLO_DIALECT_CHLO_OPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributeInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "stablehlo/dialect/StablehloTypes.td"

def Chlo_Dialect : Dialect {
  let name = "chlo";
  let cppNamespace = "::mlir::chlo";
  let summary = "mathematics that the client lowers to StableHLO";
  let useDefaultAttributePrinterParser = 0;
  let extraClassDeclaration = [{
    ::mlir::Attribute parseAttribute(::mlir::DialectAsmParser &parser,
                                     ::mlir::Type type) const override;
    void printAttribute(::mlir::Attribute attr,
                        ::mlir::DialectAsmPrinter &printer) const override;
    void registerAttributes();
  }];
}

class CHLO_Enum<string name, list<string> cases> : I32EnumAttr<name, "",
    !foreach(index, !range(0, !size(cases)), I32EnumAttrCase<cases[index], index>)> {
  let cppNamespace = "::mlir::chlo";
  let genSpecializedAttr = 0;
}
def CHLO_Precision : CHLO_Enum<"Precision", ["DEFAULT", "HIGH", "HIGHEST"]>;
def CHLO_PrecisionAttr : EnumAttr<Chlo_Dialect, CHLO_Precision, "precision">;
def CHLO_ComparisonDirection
    : CHLO_Enum<"ComparisonDirection", ["EQ", "NE", "GE", "GT", "LE", "LT"]>;
def CHLO_ComparisonDirectionAttr
    : EnumAttr<Chlo_Dialect, CHLO_ComparisonDirection, "comparison_direction">;
def CHLO_ComparisonType
    : CHLO_Enum<"ComparisonType", ["NOTYPE", "FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED"]>;
def CHLO_ComparisonTypeAttr : EnumAttr<Chlo_Dialect, CHLO_ComparisonType, "comparison_type">;

def CHLO_Dims : ArrayRefParameter<"int64_t">;
def CHLO_RaggedDotDimensionNumbers : AttrDef<Chlo_Dialect, "RaggedDotDimensionNumbers"> {
  let mnemonic = "ragged_dot";
  let parameters = (ins
    CHLO_Dims:$lhsBatchingDimensions, CHLO_Dims:$rhsBatchingDimensions,
    CHLO_Dims:$lhsContractingDimensions, CHLO_Dims:$rhsContractingDimensions,
    CHLO_Dims:$lhsRaggedDimensions, CHLO_Dims:$rhsGroupDimensions);
  let hasCustomAssemblyFormat = 1;
}

class CHLO_Op<string mnemonic, list<Trait> traits> : Op<Chlo_Dialect, mnemonic, traits>;

class CHLO_InferredOp<string mnemonic, list<Trait> traits = []>
    : CHLO_Op<mnemonic, [Pure, InferTypeOpInterface, HLO_HasCompatibleTypes] # traits> {
  let extraClassDeclaration = [{
    static bool isCompatibleReturnTypes(::mlir::TypeRange lhs, ::mlir::TypeRange rhs) {
      return ::mlir::hlo::isCompatibleForHloTypeInference(lhs, rhs);
    }
  }];
}

//===----------------------------------------------------------------------===//
// Elementwise
//===----------------------------------------------------------------------===//

class CHLO_Unary<string mnemonic, Type type>
    : CHLO_InferredOp<mnemonic, [Elementwise, SameOperandsAndResultShape]> {
  let arguments = (ins type:$operand);
  let results = (outs type:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
}
class CHLO_Binary<string mnemonic, Type type, string first, string second>
    : CHLO_InferredOp<mnemonic, [Elementwise]> {
  let arguments = !dag(ins, [type, type], [first, second]);
  let results = (outs type:$result);
  let assemblyFormat = "$" # first # " `,` $" # second # " attr-dict `:` type($" # first
      # ") `,` type($" # second # ") `->` type($result)";
}
class CHLO_Predicate<string mnemonic>
    : CHLO_Op<mnemonic, [Pure, Elementwise, SameOperandsAndResultShape]> {
  let arguments = (ins HLO_AnyFpTensor:$operand);
  let results = (outs HLO_AnyPredTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
}

def CHLO_AsinAcosKernelOp : CHLO_Unary<"_asin_acos_kernel", HLO_AnyComplexTensor>;
def CHLO_AcosOp : CHLO_Unary<"acos", HLO_AnyFpOrComplexTensor>;
def CHLO_AcoshOp : CHLO_Unary<"acosh", HLO_AnyFpOrComplexTensor>;
def CHLO_AsinOp : CHLO_Unary<"asin", HLO_AnyFpOrComplexTensor>;
def CHLO_AsinhOp : CHLO_Unary<"asinh", HLO_AnyFpOrComplexTensor>;
def CHLO_AtanOp : CHLO_Unary<"atan", HLO_AnyFpOrComplexTensor>;
def CHLO_AtanhOp : CHLO_Unary<"atanh", HLO_AnyFpOrComplexTensor>;
def CHLO_BesselI1eOp : CHLO_Unary<"bessel_i1e", HLO_AnyFpOrComplexTensor>;
def CHLO_ConjOp : CHLO_Unary<"conj", HLO_AnyFpOrComplexTensor>;
def CHLO_CoshOp : CHLO_Unary<"cosh", HLO_AnyFpOrComplexTensor>;
def CHLO_DigammaOp : CHLO_Unary<"digamma", HLO_AnyFpTensor>;
def CHLO_ErfOp : CHLO_Unary<"erf", HLO_AnyFpTensor>;
def CHLO_ErfInvOp : CHLO_Unary<"erf_inv", HLO_AnyFpTensor>;
def CHLO_ErfcOp : CHLO_Unary<"erfc", HLO_AnyFpTensor>;
def CHLO_LgammaOp : CHLO_Unary<"lgamma", HLO_AnyFpTensor>;
def CHLO_SinhOp : CHLO_Unary<"sinh", HLO_AnyFpOrComplexTensor>;
def CHLO_SquareOp : CHLO_Unary<"square", HLO_AnyFpOrComplexTensor>;
def CHLO_TanOp : CHLO_Unary<"tan", HLO_AnyFpOrComplexTensor>;
def CHLO_MulhiOp : CHLO_Binary<"mulhi", HLO_AnyPredOrIntTensor, "lhs", "rhs">;
def CHLO_NextAfterOp : CHLO_Binary<"next_after", HLO_AnyFpTensor, "x", "y">;
def CHLO_PolygammaOp : CHLO_Binary<"polygamma", HLO_AnyFpTensor, "n", "x">;
def CHLO_ZetaOp : CHLO_Binary<"zeta", HLO_AnyFpTensor, "x", "q">;
def CHLO_IsInfOp : CHLO_Predicate<"is_inf">;
def CHLO_IsNegInfOp : CHLO_Predicate<"is_neg_inf">;
def CHLO_IsPosInfOp : CHLO_Predicate<"is_pos_inf">;

//===----------------------------------------------------------------------===//
// Elementwise, of operands that are broadcast
//===----------------------------------------------------------------------===//

// Operands of lower rank get their dimensions as `broadcast_dimensions` say, or in
// front; dimensions of size 1 are repeated.
def CHLO_Broadcasting : NativeOpTrait<"Broadcasting"> {
  let cppNamespace = "::mlir::chlo::OpTrait";
}

class CHLO_BroadcastBinary<string mnemonic, list<Trait> traits,
                           Type type = HLO_AnyTensor, Type resultType = type>
    : CHLO_Op<mnemonic, [Pure, CHLO_Broadcasting] # traits> {
  let arguments = (ins type:$lhs, type:$rhs,
    OptionalAttr<DenseI64ArrayAttr>:$broadcast_dimensions);
  let results = (outs resultType:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict `:` `(` type($lhs) `,` type($rhs) `)` `->` type($result)
  }];
}
class CHLO_BroadcastSame<string mnemonic, list<Trait> traits = [], Type type = HLO_AnyTensor>
    : CHLO_BroadcastBinary<mnemonic, [SameOperandsAndResultElementType] # traits, type>;
class CHLO_BroadcastCompatible<string mnemonic>
    : CHLO_BroadcastBinary<mnemonic, [Commutative, HLO_CompatibleOperandsAndResultElementType]>;

def CHLO_BroadcastAddOp : CHLO_BroadcastCompatible<"broadcast_add">;
def CHLO_BroadcastMaxOp : CHLO_BroadcastCompatible<"broadcast_maximum">;
def CHLO_BroadcastMinOp : CHLO_BroadcastCompatible<"broadcast_minimum">;
def CHLO_BroadcastAtan2Op : CHLO_BroadcastSame<"broadcast_atan2">;
def CHLO_BroadcastDivOp : CHLO_BroadcastSame<"broadcast_divide">;
def CHLO_BroadcastMulOp : CHLO_BroadcastSame<"broadcast_multiply", [Commutative]>;
def CHLO_BroadcastNextAfterOp : CHLO_BroadcastSame<"broadcast_next_after">;
def CHLO_BroadcastPolygammaOp : CHLO_BroadcastSame<"broadcast_polygamma">;
def CHLO_BroadcastPowOp : CHLO_BroadcastSame<"broadcast_power">;
def CHLO_BroadcastRemOp : CHLO_BroadcastSame<"broadcast_remainder">;
def CHLO_BroadcastShiftLeftOp : CHLO_BroadcastSame<"broadcast_shift_left">;
def CHLO_BroadcastShiftRightArithmeticOp
    : CHLO_BroadcastSame<"broadcast_shift_right_arithmetic">;
def CHLO_BroadcastShiftRightLogicalOp : CHLO_BroadcastSame<"broadcast_shift_right_logical">;
def CHLO_BroadcastSubOp : CHLO_BroadcastSame<"broadcast_subtract">;
def CHLO_BroadcastZetaOp : CHLO_BroadcastSame<"broadcast_zeta", [], HLO_AnyFpTensor>;
def CHLO_BroadcastAndOp
    : CHLO_BroadcastSame<"broadcast_and", [Commutative], HLO_AnyPredOrIntTensor>;
def CHLO_BroadcastOrOp
    : CHLO_BroadcastSame<"broadcast_or", [Commutative], HLO_AnyPredOrIntTensor>;
def CHLO_BroadcastXorOp
    : CHLO_BroadcastSame<"broadcast_xor", [Commutative], HLO_AnyPredOrIntTensor>;
def CHLO_BroadcastComplexOp : CHLO_BroadcastBinary<"broadcast_complex",
    [SameOperandsElementType], HLO_AnyFpTensor, HLO_AnyComplexTensor> {
  let hasVerifier = 1;
}
def CHLO_BroadcastCompareOp : CHLO_BroadcastBinary<"broadcast_compare",
    [HLO_CompatibleOperandsElementType], HLO_AnyTensor, HLO_AnyPredTensor> {
  let arguments = (ins HLO_AnyTensor:$lhs, HLO_AnyTensor:$rhs,
    OptionalAttr<DenseI64ArrayAttr>:$broadcast_dimensions,
    CHLO_ComparisonDirectionAttr:$comparison_direction,
    OptionalAttr<CHLO_ComparisonTypeAttr>:$compare_type);
}
def CHLO_BroadcastSelectOp : CHLO_Op<"broadcast_select",
    [Pure, CHLO_Broadcasting, AllElementTypesMatch<["on_true", "on_false", "result"]>]> {
  let arguments = (ins HLO_PredTensor:$pred, HLO_AnyTensor:$on_true, HLO_AnyTensor:$on_false);
  let results = (outs HLO_AnyTensor:$result);
  let assemblyFormat = [{
    $pred `,` $on_true `,` $on_false attr-dict `:`
    `(` type($pred) `,` type($on_true) `,` type($on_false) `)` `->` type($result)
  }];
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

def CHLO_ConstantOp : CHLO_Op<"constant",
    [Pure, ConstantLike, AllTypesMatch<["value", "output"]>]> {
  let arguments = (ins ElementsAttr:$value);
  let results = (outs HLO_StaticShapeTensor:$output);
  let assemblyFormat = "attr-dict $value";
  let hasFolder = 1;
}

def CHLO_ConstantLikeOp : CHLO_Op<"constant_like", [Pure, SameOperandsAndResultShape]> {
  let summary = "a tensor of one value, with the operand's sizes";
  let arguments = (ins TypedAttrInterface:$value, HLO_AnyTensor:$operand);
  let results = (outs HLO_AnyTensor:$result);
  let hasVerifier = 1;
}

def CHLO_TopKOp : CHLO_Op<"top_k",
    [Pure, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let arguments = (ins HLO_AnyTensor:$operand, I64Attr:$k);
  let results = (outs HLO_AnyTensor:$values, HLO_AnyTensor:$indices);
  let assemblyFormat = [{
    `(` $operand `,` `k` `=` $k `)` attr-dict `:`
    type($operand) `->` `(` type($values) `,` type($indices) `)`
  }];
  let hasVerifier = 1;
}

def CHLO_RaggedDotOp : CHLO_Op<"ragged_dot", [Pure]> {
  let summary = "a product of matrices of which one has groups of different sizes";
  let description = [{
    The ragged dimension of the left operand consists of groups. Where it is
    neither batched nor contracted, the right operand has one matrix for each
    group; where it is contracted, the result has one product for each; where it
    is a batch, groups of batches follow one another.

    ```
    [b, m, k], [g, b, k, n], [b, g] -> [b, m, n]   (m is ragged)
    [b, m, k], [b, k, n],    [b, g] -> [g, b, m, n] (k is ragged)
    [b, m, k], [b, k, n],    [g]    -> [b, m, n]   (b is ragged)
    ```
  }];
  let arguments = (ins HLO_AnyTensor:$lhs, HLO_AnyTensor:$rhs, HLO_IntTensor:$group_sizes,
    CHLO_RaggedDotDimensionNumbers:$ragged_dot_dimension_numbers,
    OptionalAttr<TypedArrayAttrBase<CHLO_PrecisionAttr, "array of precisions">>
      :$precision_config);
  let results = (outs HLO_AnyTensor:$result);
  let hasVerifier = 1;
}

def CHLO_ScanOp : CHLO_Op<"scan", [
    AttrSizedOperandSegments, AttrSizedResultSegments, IsolatedFromAbove,
    RecursiveMemoryEffects,
    DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmBlockArgumentNames"]>]> {
  let arguments = (ins Variadic<HLO_AnyTensor>:$inputs, Variadic<HLO_AnyTensor>:$inits,
    ConfinedAttr<I64Attr, [IntNonNegative]>:$dimension,
    OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$scan_dim_size,
    DefaultValuedOptionalAttr<BoolAttr, "false">:$is_reverse,
    OptionalAttr<BoolAttr>:$is_associative);
  let results = (outs Variadic<HLO_AnyTensor>:$outputs, Variadic<HLO_AnyTensor>:$carries);
  let regions = (region SizedRegion<1>:$body);
  let hasCustomAssemblyFormat = 1;
  let hasVerifier = 1;
}

#endif // STABLEHLO_DIALECT_CHLO_OPS
