//===- ChloOps.td - operations that JAX emits beyond StableHLO ------------===//

#ifndef STABLEHLO_DIALECT_CHLO_OPS
#define STABLEHLO_DIALECT_CHLO_OPS

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/EnumAttr.td"
include "mlir/IR/OpAsmInterface.td"
include "mlir/IR/OpBase.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

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

def CHLO_Precision : I32EnumAttr<"Precision", "", [
    I32EnumAttrCase<"DEFAULT", 0>, I32EnumAttrCase<"HIGH", 1>,
    I32EnumAttrCase<"HIGHEST", 2>]> {
  let cppNamespace = "::mlir::chlo";
  let genSpecializedAttr = 0;
}
def CHLO_PrecisionAttr : EnumAttr<Chlo_Dialect, CHLO_Precision, "precision">;

def CHLO_OptionalDims : OptionalArrayRefParameter<"int64_t"> {
  let parser = "::mlir::stablehlo::parseDims($_parser)";
  let printer = "::mlir::stablehlo::printDims($_printer, $_self)";
}
def CHLO_RaggedDotDimensionNumbers : AttrDef<Chlo_Dialect, "RaggedDotDimensionNumbers"> {
  let mnemonic = "ragged_dot";
  let parameters = (ins
    CHLO_OptionalDims:$lhs_batching_dimensions, CHLO_OptionalDims:$rhs_batching_dimensions,
    CHLO_OptionalDims:$lhs_contracting_dimensions,
    CHLO_OptionalDims:$rhs_contracting_dimensions,
    CHLO_OptionalDims:$lhs_ragged_dimensions, CHLO_OptionalDims:$rhs_group_dimensions);
  let assemblyFormat = "`<` struct(params) `>`";
}

def CHLO_Tensor : RankedTensorOf<[AnyType]>;

class CHLO_Op<string mnemonic, list<Trait> traits> : Op<Chlo_Dialect, mnemonic, traits>;

class CHLO_Unary<string mnemonic>
    : CHLO_Op<mnemonic, [Pure, Elementwise, SameOperandsAndResultType]> {
  let arguments = (ins CHLO_Tensor:$operand);
  let results = (outs CHLO_Tensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
}
class CHLO_Binary<string mnemonic, string first, string second>
    : CHLO_Op<mnemonic, [Pure, Elementwise, SameOperandsAndResultType]> {
  let arguments = !dag(ins, [CHLO_Tensor, CHLO_Tensor], [first, second]);
  let results = (outs CHLO_Tensor:$result);
  let assemblyFormat = "$" # first # " `,` $" # second # " attr-dict `:` type($" # first
      # ") `,` type($" # second # ") `->` type($result)";
}
class CHLO_Predicate<string mnemonic>
    : CHLO_Op<mnemonic, [Pure, Elementwise, SameOperandsAndResultShape]> {
  let arguments = (ins CHLO_Tensor:$operand);
  let results = (outs RankedTensorOf<[I1]>:$result);
  let assemblyFormat = "$operand attr-dict `:` type($operand) `->` type($result)";
}

def CHLO_AcosOp : CHLO_Unary<"acos">;
def CHLO_AcoshOp : CHLO_Unary<"acosh">;
def CHLO_AsinOp : CHLO_Unary<"asin">;
def CHLO_AsinhOp : CHLO_Unary<"asinh">;
def CHLO_AtanOp : CHLO_Unary<"atan">;
def CHLO_AtanhOp : CHLO_Unary<"atanh">;
def CHLO_BesselI1eOp : CHLO_Unary<"bessel_i1e">;
def CHLO_ConjOp : CHLO_Unary<"conj">;
def CHLO_CoshOp : CHLO_Unary<"cosh">;
def CHLO_DigammaOp : CHLO_Unary<"digamma">;
def CHLO_ErfOp : CHLO_Unary<"erf">;
def CHLO_ErfInvOp : CHLO_Unary<"erf_inv">;
def CHLO_ErfcOp : CHLO_Unary<"erfc">;
def CHLO_LgammaOp : CHLO_Unary<"lgamma">;
def CHLO_SinhOp : CHLO_Unary<"sinh">;
def CHLO_SquareOp : CHLO_Unary<"square">;
def CHLO_TanOp : CHLO_Unary<"tan">;
def CHLO_MulhiOp : CHLO_Binary<"mulhi", "lhs", "rhs">;
def CHLO_NextAfterOp : CHLO_Binary<"next_after", "x", "y">;
def CHLO_PolygammaOp : CHLO_Binary<"polygamma", "n", "x">;
def CHLO_ZetaOp : CHLO_Binary<"zeta", "x", "q">;
def CHLO_IsInfOp : CHLO_Predicate<"is_inf">;
def CHLO_IsNegInfOp : CHLO_Predicate<"is_neg_inf">;
def CHLO_IsPosInfOp : CHLO_Predicate<"is_pos_inf">;

def CHLO_TopKOp : CHLO_Op<"top_k",
    [Pure, DeclareOpInterfaceMethods<OpAsmOpInterface, ["getAsmResultNames"]>]> {
  let arguments = (ins CHLO_Tensor:$operand, I64Attr:$k);
  let results = (outs CHLO_Tensor:$values, CHLO_Tensor:$indices);
  let assemblyFormat = [{
    `(` $operand `,` `k` `=` $k `)` attr-dict `:`
    type($operand) `->` `(` type($values) `,` type($indices) `)`
  }];
  let hasVerifier = 1;
}

def CHLO_RaggedDotOp : CHLO_Op<"ragged_dot", [Pure]> {
  let arguments = (ins CHLO_Tensor:$lhs, CHLO_Tensor:$rhs, CHLO_Tensor:$group_sizes,
    CHLO_RaggedDotDimensionNumbers:$ragged_dot_dimension_numbers,
    OptionalAttr<TypedArrayAttrBase<CHLO_PrecisionAttr, "array of precisions">>
      :$precision_config);
  let results = (outs CHLO_Tensor:$result);
  let hasVerifier = 1;
}

def CHLO_ScanOp : CHLO_Op<"scan", [
    AttrSizedOperandSegments, AttrSizedResultSegments, IsolatedFromAbove,
    RecursiveMemoryEffects]> {
  let arguments = (ins Variadic<CHLO_Tensor>:$inputs, Variadic<CHLO_Tensor>:$inits,
    ConfinedAttr<I64Attr, [IntNonNegative]>:$dimension,
    OptionalAttr<ConfinedAttr<I64Attr, [IntNonNegative]>>:$scan_dim_size,
    DefaultValuedOptionalAttr<BoolAttr, "false">:$is_reverse,
    OptionalAttr<BoolAttr>:$is_associative);
  let results = (outs Variadic<CHLO_Tensor>:$outputs, Variadic<CHLO_Tensor>:$carries);
  let regions = (region SizedRegion<1>:$body);
  let hasVerifier = 1;
}

#endif // STABLEHLO_DIALECT_CHLO_OPS
