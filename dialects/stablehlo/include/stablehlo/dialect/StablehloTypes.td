//===- StablehloTypes.td - which types operations take --------------------===//

#ifndef STABLEHLO_DIALECT_TYPES
#define STABLEHLO_DIALECT_TYPES

include "mlir/IR/OpBase.td"

//===----------------------------------------------------------------------===//
// Element types
//===----------------------------------------------------------------------===//

def HLO_Pred : TypeAlias<I1, "bool">;
def HLO_SInt : SignlessIntOfWidths<[2, 4, 8, 16, 32, 64]>;
def HLO_UInt : UnsignedIntOfWidths<[2, 4, 8, 16, 32, 64]>;
def HLO_Int : AnyTypeOf<[HLO_SInt, HLO_UInt], "2/4/8/16/32/64-bit integer">;
def HLO_Float : AnyTypeOf<[F4E2M1FN, F6E2M3FN, F6E3M2FN, F8E3M4, F8E4M3, F8E4M3FN,
    F8E4M3FNUZ, F8E4M3B11FNUZ, F8E5M2, F8E5M2FNUZ, F8E8M0FNU, BF16, F16, F32, F64],
    "4/6/8/16/32/64-bit float">;
def HLO_Float32Or64 : AnyTypeOf<[F32, F64], "32/64-bit float">;
def HLO_Complex : Complex<HLO_Float32Or64>;

// Storage of 2 to 32 bits, zero points that it holds, scales that the expressed
// type holds.
def HLO_QuantizedInt : Type<
    CPred<"::mlir::hlo::isQuantizedPerTensor($_self)">,
    "per-tensor integer quantized">;
def HLO_PerAxisQuantizedInt : Type<
    CPred<"::mlir::hlo::isQuantizedPerAxis($_self)">,
    "per-axis integer quantized">;

//===----------------------------------------------------------------------===//
// Predicates on shapes
//===----------------------------------------------------------------------===//

// The axis of quantization exists and has one scale for each of its entries.
def HLO_HasQuantizedDimension : CPred<"::mlir::hlo::isValidQuantizedDimension($_self)">;
def HLO_IsStaticOrBounded : Or<[
    HasStaticShapePred, CPred<"::mlir::hlo::hasSingleBoundedDimension($_self)">]>;
def HLO_IsStaticVector : And<[HasStaticShapePred, HasAnyRankOfPred<[1]>]>;

class HLO_TensorOf<list<Type> elements, list<Pred> predicates = [], string summary = "ranked tensor">
    : RankedTensorOf<elements, predicates, summary>;
class HLO_ScalarOf<list<Type> elements> : 0DTensorOf<elements>;

//===----------------------------------------------------------------------===//
// Tensors
//===----------------------------------------------------------------------===//

class HLO_Elements<list<Type> elements> {
  list<Type> types = elements;
}
def HLO_Plain : HLO_Elements<[HLO_Float, HLO_Pred, HLO_Int, HLO_Complex]>;
def HLO_PlainOrQuantized : HLO_Elements<HLO_Plain.types # [HLO_QuantizedInt]>;
def HLO_AnyElement : HLO_Elements<HLO_PlainOrQuantized.types # [HLO_PerAxisQuantizedInt]>;

def HLO_Tensor : HLO_TensorOf<HLO_PlainOrQuantized.types>;
def HLO_ScalarTensor : HLO_ScalarOf<HLO_PlainOrQuantized.types>;
def HLO_NonQuantizedTensor : HLO_TensorOf<HLO_Plain.types>;
def HLO_TensorOrPerAxisQuantizedTensor
    : HLO_TensorOf<HLO_AnyElement.types, [HLO_HasQuantizedDimension]>;
def HLO_PerAxisQuantizedIntTensor
    : HLO_TensorOf<[HLO_PerAxisQuantizedInt], [HLO_HasQuantizedDimension]>;
def HLO_QuantizedIntOrPerAxisQuantizedIntTensor
    : HLO_TensorOf<[HLO_QuantizedInt, HLO_PerAxisQuantizedInt], [HLO_HasQuantizedDimension]>;
def HLO_FloatOrQuantizedIntOrPerAxisQuantizedIntTensor
    : HLO_TensorOf<[HLO_Float, HLO_QuantizedInt, HLO_PerAxisQuantizedInt],
                   [HLO_HasQuantizedDimension]>;

def HLO_PredTensor : HLO_TensorOf<[HLO_Pred]>;
def HLO_IntTensor : HLO_TensorOf<[HLO_Int]>;
def HLO_FpTensor : HLO_TensorOf<[HLO_Float]>;
def HLO_Fp32Or64Tensor : HLO_TensorOf<[HLO_Float32Or64]>;
def HLO_ComplexTensor : HLO_TensorOf<[HLO_Complex]>;
def HLO_PredOrIntTensor : HLO_TensorOf<[HLO_Pred, HLO_Int]>;
def HLO_IntOrFpTensor : HLO_TensorOf<[HLO_Int, HLO_Float]>;
def HLO_PredIntOrFpTensor : HLO_TensorOf<[HLO_Pred, HLO_Int, HLO_Float]>;
def HLO_FpOrComplexTensor : HLO_TensorOf<[HLO_Float, HLO_Complex]>;
def HLO_FpOrQuantizedIntTensor : HLO_TensorOf<[HLO_Float, HLO_QuantizedInt]>;
def HLO_FpComplexOrQuantizedIntTensor
    : HLO_TensorOf<[HLO_Float, HLO_Complex, HLO_QuantizedInt]>;
def HLO_SignedFpComplexOrQuantizedIntTensor
    : HLO_TensorOf<[HLO_SInt, HLO_Float, HLO_Complex, HLO_QuantizedInt]>;
def HLO_SignedFpOrQuantizedIntTensor
    : HLO_TensorOf<[HLO_SInt, HLO_Float, HLO_QuantizedInt]>;
def HLO_IntFpOrComplexOrQuantizedIntTensor
    : HLO_TensorOf<[HLO_Int, HLO_Float, HLO_Complex, HLO_QuantizedInt]>;
def HLO_FeatureTensor : 1DTensorOf<[HLO_Float, HLO_QuantizedInt]>;

def HLO_I32Tensor : HLO_TensorOf<[I32]>;
def HLO_UI32Scalar : HLO_ScalarOf<[UI32]>;
def HLO_ScalarIntTensor : HLO_ScalarOf<[HLO_Int]>;
def HLO_PredIntOrFpScalar : HLO_ScalarOf<[HLO_Pred, HLO_Int, HLO_Float]>;
def HLO_PredScalar : HLO_ScalarOf<[HLO_Pred]>;
def HLO_I32Scalar : HLO_ScalarOf<[I32]>;
def HLO_IndexTensor : HLO_TensorOf<[AnyInteger, Index]>;

// Sizes, one for each dimension of another tensor.
def HLO_DimensionValue : AnyTypeOf<[Index, HLO_Int]>;
def HLO_DimensionTensor : 1DTensorOf<[HLO_DimensionValue]>;
def HLO_StaticDimensionTensor : HLO_TensorOf<[HLO_DimensionValue], [HLO_IsStaticVector],
    "statically shaped 1-dimensional tensor">;
def HLO_Static1DIntTensor : HLO_TensorOf<[HLO_Int], [HLO_IsStaticVector],
    "statically shaped 1-dimensional integer tensor">;
def HLO_Static2DIntTensor : HLO_TensorOf<[HLO_Int],
    [HasStaticShapePred, HasAnyRankOfPred<[2]>],
    "statically shaped 2-dimensional integer tensor">;

def HLO_StaticShapeTensor : StaticShapeTensorOf<HLO_PlainOrQuantized.types>;
def HLO_StaticShapeTensorOrPerAxisQuantizedTensor : HLO_TensorOf<HLO_AnyElement.types,
    [HLO_HasQuantizedDimension, HasStaticShapePred], "statically shaped tensor">;
def HLO_StaticShapeTensorPerAxisQuantizedTensorOrBoundedTensor
    : HLO_TensorOf<HLO_AnyElement.types, [HLO_HasQuantizedDimension, HLO_IsStaticOrBounded],
                   "statically shaped or single bounded dimension tensor">;
def HLO_StaticShapeIntOrFpTensor : StaticShapeTensorOf<[HLO_Int, HLO_Float]>;
def HLO_StaticShapeIntFpComplexOrQuantizedTensor
    : StaticShapeTensorOf<[HLO_Int, HLO_Float, HLO_Complex, HLO_QuantizedInt]>;

//===----------------------------------------------------------------------===//
// Tensors of any rank, for CHLO and for calls
//===----------------------------------------------------------------------===//

def HLO_AnyTensor : TensorOf<HLO_AnyElement.types, [HLO_HasQuantizedDimension]>;
def HLO_AnyPredTensor : TensorOf<[HLO_Pred]>;
def HLO_AnyFpTensor : TensorOf<[HLO_Float]>;
def HLO_AnyComplexTensor : TensorOf<[HLO_Complex]>;
def HLO_AnyFpOrComplexTensor : TensorOf<[HLO_Float, HLO_Complex]>;
def HLO_AnyPredOrIntTensor : TensorOf<[HLO_Pred, HLO_Int]>;

//===----------------------------------------------------------------------===//
// Tokens, buffers, tuples
//===----------------------------------------------------------------------===//

def HLO_Token : Type<CPred<"::mlir::hlo::isToken($_self)">, "token">;
def HLO_Buffer : MemRefOf<HLO_PlainOrQuantized.types>;
def HLO_Tuple : NestedTupleOf<[HLO_Tensor, HLO_Buffer, HLO_PerAxisQuantizedIntTensor, HLO_Token]>;

def HLO_TensorOrToken : AnyTypeOf<[HLO_Tensor, HLO_Token]>;
def HLO_TensorOrPerAxisQuantizedTensorOrToken
    : AnyTypeOf<[HLO_Tensor, HLO_PerAxisQuantizedIntTensor, HLO_Token]>;
def HLO_TensorOrPerAxisQuantizedTensorOrTokenOrBuffer
    : AnyTypeOf<[HLO_TensorOrPerAxisQuantizedTensorOrToken, HLO_Buffer]>;
def HLO_TensorOrPerAxisQuantizedTensorOrTokenOrTuple
    : AnyTypeOf<[HLO_TensorOrPerAxisQuantizedTensorOrToken, HLO_Tuple]>;
def HLO_TensorOrPerAxisQuantizedTensorOrTokenOrTupleOrBuffer
    : AnyTypeOf<[HLO_TensorOrPerAxisQuantizedTensorOrTokenOrTuple, HLO_Buffer]>;
def HLO_StaticShapeTensorOrPerAxisQuantizedTensorOrToken
    : AnyTypeOf<[HLO_StaticShapeTensorOrPerAxisQuantizedTensor, HLO_Token]>;

def HLO_CustomCallTuple : NestedTupleOf<[HLO_AnyTensor, HLO_Buffer, HLO_Token]>;
def HLO_CustomCallValue
    : AnyTypeOf<[HLO_AnyTensor, HLO_Buffer, HLO_Token, HLO_CustomCallTuple]>;

//===----------------------------------------------------------------------===//
// Traits
//===----------------------------------------------------------------------===//

class HLO_NativeOpTrait<string name> : NativeOpTrait<name> {
  let cppNamespace = "::mlir::hlo::OpTrait";
}
// Shapes may differ where one is dynamic, elements where scale and zero point do.
def HLO_HasCompatibleTypes : HLO_NativeOpTrait<"CompatibleOperandsAndResultType">;
def HLO_CompatibleOperandsAndResultElementType
    : HLO_NativeOpTrait<"CompatibleOperandsAndResultElementType">;
def HLO_CompatibleOperandsElementType : HLO_NativeOpTrait<"CompatibleOperandsElementType">;

#endif // STABLEHLO_DIALECT_TYPES
