//===- Base.h - What types of operations go together ------------*- C++ -*-===//
//
// A size may be dynamic, which fits any; the encoding of a tensor may bound it.
// Quantized elements go together where they store and express the same types.
//
//===----------------------------------------------------------------------===//

#ifndef STABLEHLO_DIALECT_BASE_H
#define STABLEHLO_DIALECT_BASE_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"

namespace mlir::hlo {

//===----------------------------------------------------------------------===//
// Properties of types
//===----------------------------------------------------------------------===//

/// An element quantized with one scale and zero point.
bool isQuantizedPerTensor(Type type);

/// An element quantized with a scale and zero point for each entry of an axis.
bool isQuantizedPerAxis(Type type);

/// The axis of quantization exists and has one scale for each entry. True of
/// types without one.
bool isValidQuantizedDimension(Type type);

/// One dimension is dynamic, and it is bounded.
bool hasSingleBoundedDimension(Type type);

bool isToken(Type type);

/// The bounds of an encoding, `kDynamic` where there is none; empty without
/// bounds.
ArrayRef<int64_t> encodingToBounds(Attribute encoding);

/// The bits of an element; of a quantized one, those of its storage.
unsigned getBitWidth(Type element);

//===----------------------------------------------------------------------===//
// Types that go together
//===----------------------------------------------------------------------===//

bool isCompatibleElementTypeForHloTypeInference(Type lhs, Type rhs);
bool isCompatibleForHloTypeInference(Type lhs, Type rhs);
bool isCompatibleForHloTypeInference(TypeRange lhs, TypeRange rhs);

/// An element may be accumulated in another of its kind and at least its width;
/// floating-point numbers in any.
bool isPromotableElementType(Type from, Type to);

/// The type of which all that is known of several is known.
FailureOr<Type> inferMostSpecificType(std::optional<Location> location,
                                      TypeRange types);

/// The type of which only what is common to several is known.
FailureOr<Type> inferLeastSpecificType(std::optional<Location> location,
                                       TypeRange types);

/// The integers of a constant.
LogicalResult matchInts(Value value, SmallVector<int64_t> &result);

//===----------------------------------------------------------------------===//
// Traits
//===----------------------------------------------------------------------===//

namespace detail {
LogicalResult verifyCompatible(Operation *op);
LogicalResult verifyCompatibleElements(Operation *op, TypeRange types,
                                       StringRef what);
} // namespace detail

namespace OpTrait {

/// Operands and the one result are compatible; the result is what is known of
/// all operands.
template <typename ConcreteType>
class CompatibleOperandsAndResultType
    : public mlir::OpTrait::TraitBase<ConcreteType,
                                      CompatibleOperandsAndResultType> {
public:
  static LogicalResult verifyTrait(Operation *op) {
    return detail::verifyCompatible(op);
  }
  static LogicalResult inferReturnTypes(MLIRContext *,
                                        std::optional<Location> location,
                                        ValueRange operands, DictionaryAttr,
                                        OpaqueProperties, RegionRange,
                                        SmallVectorImpl<Type> &results) {
    if (operands.empty()) {
      return emitOptionalError(location, "needs at least one operand");
    }
    FailureOr<Type> type = inferMostSpecificType(location, operands.getTypes());
    if (failed(type)) {
      return failure();
    }
    results.push_back(*type);
    return success();
  }
};

template <typename ConcreteType>
class CompatibleOperandsAndResultElementType
    : public mlir::OpTrait::TraitBase<ConcreteType,
                                      CompatibleOperandsAndResultElementType> {
public:
  static LogicalResult verifyTrait(Operation *op) {
    auto types = llvm::to_vector(op->getOperandTypes());
    llvm::append_range(types, op->getResultTypes());
    return detail::verifyCompatibleElements(op, types, "operands and results");
  }
};

template <typename ConcreteType>
class CompatibleOperandsElementType
    : public mlir::OpTrait::TraitBase<ConcreteType,
                                      CompatibleOperandsElementType> {
public:
  static LogicalResult verifyTrait(Operation *op) {
    return detail::verifyCompatibleElements(op, op->getOperandTypes(),
                                            "operands");
  }
};

} // namespace OpTrait
} // namespace mlir::hlo

#endif // STABLEHLO_DIALECT_BASE_H
