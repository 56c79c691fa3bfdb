//===- StablehloElementwise.td - elementwise operations -------------------===//

#ifndef STABLEHLO_DIALECT_ELEMENTWISE
#define STABLEHLO_DIALECT_ELEMENTWISE

include "stablehlo/dialect/StablehloBase.td"

class HLO_Unary<string mnemonic, Type type = HLO_Tensor, list<Trait> traits = []>
    : HLO_Op<mnemonic, !listconcat([Pure, Elementwise, SameOperandsAndResultType], traits)> {
  let arguments = (ins type:$operand);
  let results = (outs type:$result);
  let assemblyFormat = [{
    $operand attr-dict `:`
    custom<SameOperandsAndResultType>(type($operand), type($result))
  }];
}

// Functions whose accuracy may be asked for.
class HLO_UnaryWithAccuracy<string mnemonic> : HLO_Unary<mnemonic> {
  let arguments = (ins HLO_Tensor:$operand, OptionalAttr<AnyAttr>:$result_accuracy);
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$operand), [{
    build($_builder, $_state, result, operand, /*result_accuracy=*/nullptr);
  }]>];
}

class HLO_Binary<string mnemonic, list<Trait> traits = [], Type type = HLO_Tensor>
    : HLO_Op<mnemonic, !listconcat([Pure, Elementwise, SameOperandsAndResultType], traits)> {
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict `:`
    custom<SameOperandsAndResultType>(type($lhs), type($rhs), type($result))
  }];
}

class HLO_BinaryInt<string mnemonic, list<Trait> traits = []>
    : HLO_Binary<mnemonic, traits, HLO_PredOrIntTensor>;

def HLO_CeilOp : HLO_Unary<"ceil">;
def HLO_FloorOp : HLO_Unary<"floor">;
def HLO_NegOp : HLO_Unary<"negate">;
def HLO_RoundOp : HLO_Unary<"round_nearest_afz">;
def HLO_RoundNearestEvenOp : HLO_Unary<"round_nearest_even">;
def HLO_SignOp : HLO_Unary<"sign">;
def HLO_ClzOp : HLO_Unary<"count_leading_zeros", HLO_PredOrIntTensor>;
def HLO_NotOp : HLO_Unary<"not", HLO_PredOrIntTensor>;
def HLO_PopulationCountOp : HLO_Unary<"popcnt", HLO_PredOrIntTensor>;

def HLO_CbrtOp : HLO_UnaryWithAccuracy<"cbrt">;
def HLO_CosineOp : HLO_UnaryWithAccuracy<"cosine">;
def HLO_ExpOp : HLO_UnaryWithAccuracy<"exponential">;
def HLO_Expm1Op : HLO_UnaryWithAccuracy<"exponential_minus_one">;
def HLO_LogOp : HLO_UnaryWithAccuracy<"log">;
def HLO_Log1pOp : HLO_UnaryWithAccuracy<"log_plus_one">;
def HLO_LogisticOp : HLO_UnaryWithAccuracy<"logistic">;
def HLO_RsqrtOp : HLO_UnaryWithAccuracy<"rsqrt">;
def HLO_SineOp : HLO_UnaryWithAccuracy<"sine">;
def HLO_SqrtOp : HLO_UnaryWithAccuracy<"sqrt">;
def HLO_TanOp : HLO_UnaryWithAccuracy<"tan">;
def HLO_TanhOp : HLO_UnaryWithAccuracy<"tanh">;

def HLO_AddOp : HLO_Binary<"add", [Commutative]>;
def HLO_Atan2Op : HLO_Binary<"atan2">;
def HLO_DivOp : HLO_Binary<"divide">;
def HLO_MaxOp : HLO_Binary<"maximum", [Commutative]>;
def HLO_MinOp : HLO_Binary<"minimum", [Commutative]>;
def HLO_MulOp : HLO_Binary<"multiply", [Commutative]>;
def HLO_PowOp : HLO_Binary<"power">;
def HLO_RemOp : HLO_Binary<"remainder">;
def HLO_SubtractOp : HLO_Binary<"subtract">;
def HLO_AndOp : HLO_BinaryInt<"and", [Commutative]>;
def HLO_OrOp : HLO_BinaryInt<"or", [Commutative]>;
def HLO_XorOp : HLO_BinaryInt<"xor", [Commutative]>;
def HLO_ShiftLeftOp : HLO_BinaryInt<"shift_left">;
def HLO_ShiftRightArithmeticOp : HLO_BinaryInt<"shift_right_arithmetic">;
def HLO_ShiftRightLogicalOp : HLO_BinaryInt<"shift_right_logical">;

def HLO_AbsOp : HLO_Op<"abs", [Pure, Elementwise, SameOperandsAndResultShape]> {
  let summary = "absolute value; of a complex tensor a real one";
  let arguments = (ins HLO_Tensor:$operand);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand attr-dict `:`
    custom<SameOperandsAndResultType>(type($operand), type($result))
  }];
}

def HLO_ConvertOp : HLO_Op<"convert", [Pure, Elementwise, SameOperandsAndResultShape]> {
  let arguments = (ins HLO_Tensor:$operand);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand attr-dict `:`
    custom<SameOperandsAndResultType>(type($operand), type($result))
  }];
  let hasFolder = 1;
}

def HLO_RealOp : HLO_UnaryFunctional<"real", [Elementwise, SameOperandsAndResultShape]> {
}
def HLO_ImagOp : HLO_UnaryFunctional<"imag", [Elementwise, SameOperandsAndResultShape]> {
}
def HLO_IsFiniteOp : HLO_Op<"is_finite", [Pure, Elementwise, SameOperandsAndResultShape]> {
  let arguments = (ins HLO_Tensor:$x);
  let results = (outs HLO_PredTensor:$y);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def HLO_ComplexOp : HLO_Op<"complex", [Pure, Elementwise, SameOperandsAndResultShape]> {
  let arguments = (ins HLO_Tensor:$lhs, HLO_Tensor:$rhs);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict `:`
    custom<ComplexOpType>(type($lhs), type($rhs), type($result))
  }];
}

def HLO_CompareOp : HLO_Op<"compare", [Pure, Elementwise, SameOperandsAndResultShape]> {
  let arguments = (ins HLO_Tensor:$lhs, HLO_Tensor:$rhs,
    HLO_ComparisonDirectionAttr:$comparison_direction,
    OptionalAttr<HLO_ComparisonTypeAttr>:$compare_type);
  let results = (outs HLO_PredTensor:$result);
  let assemblyFormat = [{
    custom<EnumKeyword>($comparison_direction) `,` $lhs `,` $rhs ``
    custom<ComparisonType>($compare_type) attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def HLO_SelectOp : HLO_Op<"select", [Pure]> {
  let arguments = (ins HLO_PredTensor:$pred, HLO_Tensor:$on_true, HLO_Tensor:$on_false);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    operands attr-dict `:`
    custom<SelectOpType>(type($pred), type($on_true), type($on_false), type($result))
  }];
  let hasVerifier = 1;
}

def HLO_ClampOp : HLO_Op<"clamp", [Pure]> {
  let arguments = (ins HLO_Tensor:$min, HLO_Tensor:$operand, HLO_Tensor:$max);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $min `,` $operand `,` $max attr-dict `:`
    custom<SameOperandsAndResultType>(type($min), type($operand), type($max), type($result))
  }];
  let hasVerifier = 1;
}

def HLO_ReducePrecisionOp : HLO_Op<"reduce_precision",
    [Pure, Elementwise, SameOperandsAndResultType]> {
  let arguments = (ins HLO_Tensor:$operand, I32Attr:$exponent_bits, I32Attr:$mantissa_bits);
  let results = (outs HLO_Tensor:$output);
  let assemblyFormat = [{
    $operand `,` `format` `=` custom<ExponentMantissa>($exponent_bits, $mantissa_bits)
    attr-dict `:` custom<SameOperandsAndResultType>(type($operand), type($output))
  }];
  let hasVerifier = 1;
}

def HLO_OptimizationBarrierOp : HLO_Op<"optimization_barrier", [Pure]> {
  let arguments = (ins Variadic<HLO_TensorOrToken>:$operand);
  let results = (outs Variadic<HLO_TensorOrToken>:$result);
  let assemblyFormat = [{
    attr-dict ($operand^ `:` custom<PairwiseOpType>(type($operand), type($result))):(`(` `)`)?
  }];
  let hasVerifier = 1;
}

#endif // STABLEHLO_DIALECT_ELEMENTWISE
