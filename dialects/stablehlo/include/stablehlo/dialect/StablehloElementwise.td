//===- StablehloElementwise.td - elementwise operations -------------------===//

#ifndef STABLEHLO_DIALECT_ELEMENTWISE
#define STABLEHLO_DIALECT_ELEMENTWISE

include "stablehlo/dialect/StablehloBase.td"

class HLO_Unary<string mnemonic, Type type, list<Trait> traits = []>
    : HLO_InferredOp<mnemonic, [Pure, Elementwise, SameOperandsAndResultShape] # traits> {
  let arguments = (ins type:$operand);
  let results = (outs type:$result);
  let assemblyFormat = [{
    $operand attr-dict `:`
    custom<SameOperandsAndResultType>(type($operand), type($result))
  }];
}

// Functions whose accuracy may be asked for.
class HLO_UnaryWithAccuracy<string mnemonic>
    : HLO_Unary<mnemonic, HLO_FpComplexOrQuantizedIntTensor> {
  let arguments = (ins HLO_FpComplexOrQuantizedIntTensor:$operand,
    DefaultValuedOptionalAttr<HLO_ResultAccuracy,
      "::mlir::stablehlo::ResultAccuracyMode::DEFAULT">:$result_accuracy);
}

class HLO_Binary<string mnemonic, Type type, list<Trait> traits = []>
    : HLO_InferredOp<mnemonic, [Pure, Elementwise, SameOperandsAndResultShape] # traits> {
  let arguments = (ins type:$lhs, type:$rhs);
  let results = (outs type:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict `:`
    custom<SameOperandsAndResultType>(type($lhs), type($rhs), type($result))
  }];
}

def HLO_CeilOp : HLO_Unary<"ceil", HLO_FpOrQuantizedIntTensor>;
def HLO_FloorOp : HLO_Unary<"floor", HLO_FpOrQuantizedIntTensor>;
def HLO_NegOp : HLO_Unary<"negate", HLO_IntFpOrComplexOrQuantizedIntTensor>;
def HLO_RoundOp : HLO_Unary<"round_nearest_afz", HLO_FpOrQuantizedIntTensor>;
def HLO_RoundNearestEvenOp : HLO_Unary<"round_nearest_even", HLO_FpOrQuantizedIntTensor>;
def HLO_SignOp : HLO_Unary<"sign", HLO_SignedFpComplexOrQuantizedIntTensor>;
def HLO_ClzOp : HLO_Unary<"count_leading_zeros", HLO_IntTensor>;
def HLO_NotOp : HLO_Unary<"not", HLO_PredOrIntTensor>;
def HLO_PopulationCountOp : HLO_Unary<"popcnt", HLO_IntTensor>;

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

def HLO_Atan2Op : HLO_Binary<"atan2", HLO_FpComplexOrQuantizedIntTensor>;
def HLO_DivOp : HLO_Binary<"divide", HLO_IntFpOrComplexOrQuantizedIntTensor>;
def HLO_MaxOp : HLO_Binary<"maximum", HLO_Tensor, [Commutative]>;
def HLO_MinOp : HLO_Binary<"minimum", HLO_Tensor, [Commutative]>;
def HLO_MulOp : HLO_Binary<"multiply", HLO_Tensor, [Commutative]>;
def HLO_PowOp : HLO_Binary<"power", HLO_IntFpOrComplexOrQuantizedIntTensor>;
def HLO_RemOp : HLO_Binary<"remainder", HLO_IntFpOrComplexOrQuantizedIntTensor>;
def HLO_SubtractOp : HLO_Binary<"subtract", HLO_IntFpOrComplexOrQuantizedIntTensor>;
def HLO_AndOp : HLO_Binary<"and", HLO_PredOrIntTensor, [Commutative]>;
def HLO_OrOp : HLO_Binary<"or", HLO_PredOrIntTensor, [Commutative]>;
def HLO_XorOp : HLO_Binary<"xor", HLO_PredOrIntTensor, [Commutative]>;
def HLO_ShiftLeftOp : HLO_Binary<"shift_left", HLO_IntTensor>;
def HLO_ShiftRightArithmeticOp : HLO_Binary<"shift_right_arithmetic", HLO_IntTensor>;
def HLO_ShiftRightLogicalOp : HLO_Binary<"shift_right_logical", HLO_IntTensor>;

// Quantized operands may each have their own scale and zero point.
def HLO_AddOp : HLO_Op<"add",
    [Pure, Elementwise, SameOperandsAndResultShape, Commutative, InferTypeOpInterface]> {
  let arguments = (ins HLO_TensorOrPerAxisQuantizedTensor:$lhs,
    HLO_TensorOrPerAxisQuantizedTensor:$rhs);
  let results = (outs HLO_TensorOrPerAxisQuantizedTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict `:`
    custom<SameOperandsAndResultType>(type($lhs), type($rhs), type($result))
  }];
  let extraClassDeclaration = [{
    static ::llvm::LogicalResult inferReturnTypes(
        ::mlir::MLIRContext *context, ::std::optional<::mlir::Location> location,
        ::mlir::ValueRange operands, ::mlir::DictionaryAttr attributes,
        ::mlir::OpaqueProperties properties, ::mlir::RegionRange regions,
        ::llvm::SmallVectorImpl<::mlir::Type> &results);
    static bool isCompatibleReturnTypes(::mlir::TypeRange lhs, ::mlir::TypeRange rhs) {
      return ::mlir::hlo::isCompatibleForHloTypeInference(lhs, rhs);
    }
  }];
  let hasVerifier = 1;
}

class HLO_Converting<string mnemonic, Type type, Type resultType>
    : HLO_Op<mnemonic, [Pure, Elementwise, SameOperandsAndResultShape]> {
  let arguments = (ins type:$operand);
  let results = (outs resultType:$result);
  let assemblyFormat = [{
    $operand attr-dict `:`
    custom<SameOperandsAndResultType>(type($operand), type($result))
  }];
}

def HLO_AbsOp : HLO_Converting<"abs", HLO_SignedFpComplexOrQuantizedIntTensor,
                               HLO_SignedFpOrQuantizedIntTensor> {
  let summary = "absolute value; of a complex tensor a real one";
  let hasVerifier = 1;
}
def HLO_ConvertOp : HLO_Converting<"convert", HLO_NonQuantizedTensor, HLO_NonQuantizedTensor> {
  let hasFolder = 1;
}
def HLO_RealOp : HLO_Converting<"real", HLO_FpOrComplexTensor, HLO_FpTensor> {
  let hasVerifier = 1;
}
def HLO_ImagOp : HLO_Converting<"imag", HLO_FpOrComplexTensor, HLO_FpTensor> {
  let hasVerifier = 1;
}
def HLO_UniformQuantizeOp : HLO_Converting<"uniform_quantize",
    HLO_FloatOrQuantizedIntOrPerAxisQuantizedIntTensor,
    HLO_QuantizedIntOrPerAxisQuantizedIntTensor> {
  let hasVerifier = 1;
}
def HLO_UniformDequantizeOp : HLO_Converting<"uniform_dequantize",
    HLO_QuantizedIntOrPerAxisQuantizedIntTensor, HLO_FpTensor> {
  let hasVerifier = 1;
}

def HLO_IsFiniteOp : HLO_Op<"is_finite", [Pure, Elementwise, SameOperandsAndResultShape]> {
  let arguments = (ins HLO_FpOrQuantizedIntTensor:$x);
  let results = (outs HLO_PredTensor:$y);
  let assemblyFormat = "operands attr-dict `:` functional-type(operands, results)";
}

def HLO_ComplexOp : HLO_Op<"complex",
    [Pure, Elementwise, SameOperandsElementType, SameOperandsAndResultShape]> {
  let arguments = (ins HLO_Fp32Or64Tensor:$lhs, HLO_Fp32Or64Tensor:$rhs);
  let results = (outs HLO_ComplexTensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs attr-dict `:`
    custom<ComplexOpType>(type($lhs), type($rhs), type($result))
  }];
  let hasVerifier = 1;
}

def HLO_CompareOp : HLO_Op<"compare",
    [Pure, Elementwise, HLO_CompatibleOperandsElementType, SameOperandsAndResultShape]> {
  let arguments = (ins HLO_Tensor:$lhs, HLO_Tensor:$rhs,
    HLO_ComparisonDirectionAttr:$comparison_direction,
    OptionalAttr<HLO_ComparisonTypeAttr>:$compare_type);
  let results = (outs HLO_PredTensor:$result);
  let assemblyFormat = [{
    custom<EnumKeyword>($comparison_direction) `,` $lhs `,` $rhs ``
    custom<ComparisonType>($compare_type) attr-dict `:` functional-type(operands, results)
  }];
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

def HLO_ClampOp : HLO_Op<"clamp", [Pure, HLO_CompatibleOperandsAndResultElementType]> {
  let arguments = (ins HLO_Tensor:$min, HLO_Tensor:$operand, HLO_Tensor:$max);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $min `,` $operand `,` $max attr-dict `:`
    custom<SameOperandsAndResultType>(type($min), type($operand), type($max), type($result))
  }];
  let hasVerifier = 1;
}

def HLO_ReducePrecisionOp : HLO_InferredOp<"reduce_precision", [Pure, Elementwise]> {
  let arguments = (ins HLO_FpOrQuantizedIntTensor:$operand,
    ConfinedAttr<I32Attr, [IntPositive]>:$exponent_bits,
    ConfinedAttr<I32Attr, [IntNonNegative]>:$mantissa_bits);
  let results = (outs HLO_FpOrQuantizedIntTensor:$output);
  let assemblyFormat = [{
    $operand `,` `format` `=` custom<ExponentMantissa>($exponent_bits, $mantissa_bits)
    attr-dict `:` custom<SameOperandsAndResultType>(type($operand), type($output))
  }];
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
