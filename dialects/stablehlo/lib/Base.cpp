//===- Base.cpp - What types of operations go together --------------------===//

#include "stablehlo/dialect/Base.h"

#include "mlir/Dialect/Quant/IR/QuantTypes.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"
#include "stablehlo/dialect/StablehloOps.h"

using namespace mlir;
using namespace mlir::hlo;

//===----------------------------------------------------------------------===//
// Properties of types
//===----------------------------------------------------------------------===//

/// Scales are within what the expressed type holds, zero points within what the
/// storage type holds.
static bool holds(quant::QuantizedType type, ArrayRef<double> scales,
                  ArrayRef<int64_t> zeroPoints) {
  auto expressed = dyn_cast<FloatType>(type.getExpressedType());
  if (!expressed) {
    return false;
  }
  const llvm::fltSemantics &semantics = expressed.getFloatSemantics();
  double least = APFloat::getSmallest(semantics).convertToDouble();
  double most = APFloat::getLargest(semantics).convertToDouble();
  return llvm::all_of(
             scales,
             [&](double scale) { return least <= scale && scale <= most; }) &&
         llvm::all_of(zeroPoints, [&](int64_t point) {
           return type.getStorageTypeMin() <= point &&
                  point <= type.getStorageTypeMax();
         });
}

static bool hasKnownStorage(quant::QuantizedType type) {
  auto storage = dyn_cast<IntegerType>(type.getStorageType());
  return storage && !storage.isSigned() &&
         llvm::is_contained({2u, 4u, 8u, 16u, 32u}, storage.getWidth());
}

bool hlo::isQuantizedPerTensor(Type type) {
  auto quantized = dyn_cast<quant::UniformQuantizedType>(type);
  return quantized && hasKnownStorage(quantized) &&
         holds(quantized, quantized.getScale(), quantized.getZeroPoint());
}

bool hlo::isQuantizedPerAxis(Type type) {
  auto quantized = dyn_cast<quant::UniformQuantizedPerAxisType>(type);
  return quantized && hasKnownStorage(quantized) &&
         holds(quantized, quantized.getScales(), quantized.getZeroPoints());
}

bool hlo::isValidQuantizedDimension(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto quantized = tensor ? dyn_cast<quant::UniformQuantizedPerAxisType>(
                                tensor.getElementType())
                          : quant::UniformQuantizedPerAxisType();
  if (!quantized) {
    return true;
  }
  int64_t axis = quantized.getQuantizedDimension();
  return axis < tensor.getRank() &&
         (tensor.isDynamicDim(axis) ||
          static_cast<int64_t>(quantized.getScales().size()) ==
              tensor.getDimSize(axis));
}

bool hlo::hasSingleBoundedDimension(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.getNumDynamicDims() == 1 &&
         llvm::count_if(
             encodingToBounds(tensor.getEncoding()),
             [](int64_t bound) { return !ShapedType::isDynamic(bound); }) == 1;
}

bool hlo::isToken(Type type) { return isa<stablehlo::TokenType>(type); }

ArrayRef<int64_t> hlo::encodingToBounds(Attribute encoding) {
  auto extensions =
      dyn_cast_if_present<stablehlo::TypeExtensionsAttr>(encoding);
  return extensions ? extensions.getBounds() : ArrayRef<int64_t>();
}

unsigned hlo::getBitWidth(Type element) {
  if (auto complex = dyn_cast<ComplexType>(element)) {
    return 2 * getBitWidth(complex.getElementType());
  }
  if (auto quantized = dyn_cast<quant::QuantizedType>(element)) {
    return quantized.getStorageTypeIntegralWidth();
  }
  return element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
}

//===----------------------------------------------------------------------===//
// Types that go together
//===----------------------------------------------------------------------===//

bool hlo::isCompatibleElementTypeForHloTypeInference(Type lhs, Type rhs) {
  lhs = getElementTypeOrSelf(lhs);
  rhs = getElementTypeOrSelf(rhs);
  auto left = dyn_cast<quant::QuantizedType>(lhs);
  auto right = dyn_cast<quant::QuantizedType>(rhs);
  if (!left || !right) {
    return lhs == rhs;
  }
  return left.getStorageType() == right.getStorageType() &&
         left.getStorageTypeMin() == right.getStorageTypeMin() &&
         left.getStorageTypeMax() == right.getStorageTypeMax() &&
         left.getExpressedType() == right.getExpressedType() &&
         isa<quant::UniformQuantizedPerAxisType>(left) ==
             isa<quant::UniformQuantizedPerAxisType>(right);
}

/// No size is above the other's bound.
static bool isWithinBounds(RankedTensorType type, RankedTensorType bounding) {
  ArrayRef<int64_t> bounds = encodingToBounds(bounding.getEncoding());
  return llvm::all_of(llvm::zip(type.getShape(), bounds), [](auto pair) {
    auto [size, bound] = pair;
    return ShapedType::isDynamic(size) || ShapedType::isDynamic(bound) ||
           size <= bound;
  });
}

bool hlo::isCompatibleForHloTypeInference(Type lhs, Type rhs) {
  if (!isa<ShapedType>(lhs) || !isa<ShapedType>(rhs)) {
    return isCompatibleElementTypeForHloTypeInference(lhs, rhs);
  }
  auto left = dyn_cast<RankedTensorType>(lhs);
  auto right = dyn_cast<RankedTensorType>(rhs);
  return succeeded(verifyCompatibleShape(lhs, rhs)) &&
         (!left || !right ||
          (isWithinBounds(left, right) && isWithinBounds(right, left))) &&
         isCompatibleElementTypeForHloTypeInference(lhs, rhs);
}

bool hlo::isCompatibleForHloTypeInference(TypeRange lhs, TypeRange rhs) {
  return llvm::equal(lhs, rhs, [](Type left, Type right) {
    return isCompatibleForHloTypeInference(left, right);
  });
}

bool hlo::isPromotableElementType(Type from, Type to) {
  from = getElementTypeOrSelf(from);
  to = getElementTypeOrSelf(to);
  if (isa<FloatType>(from) && isa<FloatType>(to)) {
    return true;
  }
  auto fromQuantized = dyn_cast<quant::QuantizedType>(from);
  auto toQuantized = dyn_cast<quant::QuantizedType>(to);
  bool isOneKind =
      (isa<IntegerType>(from) && isa<IntegerType>(to)) ||
      (isa<ComplexType>(from) && isa<ComplexType>(to)) ||
      (fromQuantized && toQuantized &&
       fromQuantized.getExpressedType() == toQuantized.getExpressedType());
  return isOneKind && getBitWidth(from) <= getBitWidth(to);
}

namespace {

/// What is known of one size: the size, else a bound, else nothing.
struct Extent {
  int64_t size = ShapedType::kDynamic;
  int64_t bound = ShapedType::kDynamic;

  bool isStatic() const { return !ShapedType::isDynamic(size); }
  bool isBounded() const { return !ShapedType::isDynamic(bound); }
  /// The largest that it may be.
  int64_t most() const { return isStatic() ? size : bound; }
};

using Merge = FailureOr<Extent> (*)(std::optional<Location>, Extent, Extent);

} // namespace

static LogicalResult verifySameSize(std::optional<Location> location,
                                    Extent lhs, Extent rhs) {
  if (lhs.isStatic() && rhs.isStatic() && lhs.size != rhs.size) {
    return emitOptionalError(location, "size ", lhs.size, " meets size ",
                             rhs.size);
  }
  return success();
}

/// All that is known of either.
static FailureOr<Extent> intersect(std::optional<Location> location, Extent lhs,
                                   Extent rhs) {
  if (failed(verifySameSize(location, lhs, rhs))) {
    return failure();
  }
  if (!lhs.isStatic() && !rhs.isStatic()) {
    bool areBounded = lhs.isBounded() && rhs.isBounded();
    return Extent{ShapedType::kDynamic, areBounded
                                            ? std::min(lhs.bound, rhs.bound)
                                        : lhs.isBounded() ? lhs.bound
                                                          : rhs.bound};
  }
  int64_t size = lhs.isStatic() ? lhs.size : rhs.size;
  for (Extent extent : {lhs, rhs}) {
    if (extent.isBounded() && size > extent.bound) {
      return emitOptionalError(location, "size ", size, " is above the bound ",
                               extent.bound);
    }
  }
  return Extent{size, ShapedType::kDynamic};
}

/// What is known of both.
static FailureOr<Extent> unite(std::optional<Location> location, Extent lhs,
                               Extent rhs) {
  if (failed(verifySameSize(location, lhs, rhs))) {
    return failure();
  }
  if (lhs.isStatic() && rhs.isStatic()) {
    return lhs;
  }
  bool areKnown =
      !ShapedType::isDynamic(lhs.most()) && !ShapedType::isDynamic(rhs.most());
  return Extent{ShapedType::kDynamic, areKnown
                                          ? std::max(lhs.most(), rhs.most())
                                          : ShapedType::kDynamic};
}

static SmallVector<Extent> getExtents(RankedTensorType type) {
  ArrayRef<int64_t> bounds = encodingToBounds(type.getEncoding());
  SmallVector<Extent> extents;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    extents.push_back(
        {size, bounds.empty() ? ShapedType::kDynamic : bounds[dim]});
  }
  return extents;
}

/// A type of the prototype's elements; another encoding than one of bounds is
/// kept.
static Type makeType(RankedTensorType prototype, ArrayRef<Extent> extents) {
  SmallVector<int64_t> shape, bounds;
  bool isBounded = false;
  for (Extent extent : extents) {
    shape.push_back(extent.size);
    bounds.push_back(extent.bound);
    isBounded |= extent.isBounded();
  }
  Attribute encoding = prototype.getEncoding();
  if (isa_and_present<stablehlo::TypeExtensionsAttr>(encoding)) {
    encoding = {};
  }
  if (isBounded) {
    encoding =
        stablehlo::TypeExtensionsAttr::get(prototype.getContext(), bounds);
  }
  return RankedTensorType::get(shape, prototype.getElementType(), encoding);
}

static FailureOr<Type> mergeTypes(std::optional<Location> location,
                                  TypeRange types, Merge merge) {
  if (llvm::any_of(types,
                   [](Type type) { return !isa<RankedTensorType>(type); })) {
    return types.front();
  }
  auto first = cast<RankedTensorType>(types.front());
  SmallVector<Extent> extents = getExtents(first);
  for (Type type : types.drop_front()) {
    auto tensor = cast<RankedTensorType>(type);
    if (tensor.getRank() != first.getRank()) {
      return emitOptionalError(location, "rank ", first.getRank(),
                               " meets rank ", tensor.getRank());
    }
    for (auto [extent, other] : llvm::zip_equal(extents, getExtents(tensor))) {
      FailureOr<Extent> merged = merge(location, extent, other);
      if (failed(merged)) {
        return failure();
      }
      extent = *merged;
    }
  }
  return makeType(first, extents);
}

FailureOr<Type> hlo::inferMostSpecificType(std::optional<Location> location,
                                           TypeRange types) {
  // A type that is no ranked tensor says nothing of the others' sizes.
  SmallVector<Type> ranked = llvm::to_vector(llvm::make_filter_range(
      types, [](Type type) { return isa<RankedTensorType>(type); }));
  return ranked.empty() ? FailureOr<Type>(types.front())
                        : mergeTypes(location, ranked, intersect);
}

FailureOr<Type> hlo::inferLeastSpecificType(std::optional<Location> location,
                                            TypeRange types) {
  return mergeTypes(location, types, unite);
}

/// Sizes, paddings and the like of one operand.
static constexpr int64_t kMaxInts = 1 << 12;

LogicalResult hlo::matchInts(Value value, SmallVector<int64_t> &result) {
  DenseIntElementsAttr elements;
  // No tensor has so many dimensions; a splat's text may say so.
  if (!matchPattern(value, m_Constant(&elements)) ||
      elements.getNumElements() > kMaxInts) {
    return failure();
  }
  for (const APInt &element : elements.getValues<APInt>()) {
    // Longer numbers are no sizes.
    if (element.getSignificantBits() > 64) {
      return failure();
    }
    result.push_back(element.getSExtValue());
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Traits
//===----------------------------------------------------------------------===//

LogicalResult hlo::detail::verifyCompatible(Operation *op) {
  Type expected = op->getNumOperands() ? op->getOperand(0).getType()
                                       : op->getResult(0).getType();
  for (Type type :
       llvm::concat<const Type>(llvm::to_vector(op->getOperandTypes()),
                                llvm::to_vector(op->getResultTypes()))) {
    if (!isCompatibleForHloTypeInference(type, expected)) {
      return op->emitOpError()
             << "requires compatible types for all operands and results, but "
             << "got " << expected << " and " << type;
    }
  }
  return success();
}

LogicalResult hlo::detail::verifyCompatibleElements(Operation *op,
                                                    TypeRange types,
                                                    StringRef what) {
  for (Type type : types) {
    if (!isCompatibleElementTypeForHloTypeInference(type, types.front())) {
      return op->emitOpError()
             << "requires compatible element types for all " << what
             << ", but got " << types.front() << " and " << type;
    }
  }
  return success();
}
