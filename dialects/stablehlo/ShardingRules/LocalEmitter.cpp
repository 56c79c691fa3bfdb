//===- LocalEmitter.cpp - Writing operators for one device ----------------===//

#include "dialects/stablehlo/ShardingRules/LocalEmitter.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "llvm/ADT/STLExtras.h"
#include <limits>

using namespace mlir;
using namespace mlir::stablehlo;

Value LocalEmitter::splat(RankedTensorType type, int64_t value) {
  Type element = type.getElementType();
  Attribute number;
  if (auto complexType = dyn_cast<ComplexType>(element)) {
    Type part = complexType.getElementType();
    number = builder.getArrayAttr(
        {builder.getFloatAttr(part, static_cast<double>(value)),
         builder.getFloatAttr(part, 0.0)});
  } else if (isa<FloatType>(element)) {
    number = builder.getFloatAttr(element, static_cast<double>(value));
  } else {
    number = builder.getIntegerAttr(element, value);
  }
  return ConstantOp::create(builder, loc, type,
                            DenseElementsAttr::get(type, number))
      .getResult();
}

Value LocalEmitter::neutral(RankedTensorType type) {
  return ConstantOp::create(builder, loc, type, alpa::getNeutralOfSum(type))
      .getResult();
}

Value LocalEmitter::vector(ArrayRef<int64_t> values, Type elementType) {
  auto type =
      RankedTensorType::get({static_cast<int64_t>(values.size())}, elementType);
  auto numbers = llvm::map_to_vector(values, [&](int64_t value) -> Attribute {
    return builder.getIntegerAttr(elementType, value);
  });
  return ConstantOp::create(builder, loc, type,
                            DenseElementsAttr::get(type, numbers))
      .getResult();
}

Value LocalEmitter::broadcast(Value scalarOrVector, RankedTensorType type,
                              int64_t dim) {
  auto source = cast<RankedTensorType>(scalarOrVector.getType());
  if (source == type) {
    return scalarOrVector;
  }
  SmallVector<int64_t> dims;
  if (source.getRank() == 1) {
    dims.push_back(dim);
  }
  return BroadcastInDimOp::create(
             builder, loc,
             RankedTensorType::get(type.getShape(), source.getElementType()),
             scalarOrVector, builder.getDenseI64ArrayAttr(dims))
      .getResult();
}

Value LocalEmitter::convert(Value value, Type elementType) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getElementType() == elementType) {
    return value;
  }
  return ConvertOp::create(builder, loc,
                           RankedTensorType::get(type.getShape(), elementType),
                           value)
      .getResult();
}

Value LocalEmitter::reshape(Value value, ArrayRef<int64_t> shape) {
  auto type = cast<RankedTensorType>(value.getType());
  if (type.getShape() == shape) {
    return value;
  }
  return ReshapeOp::create(builder, loc,
                           RankedTensorType::get(shape, type.getElementType()),
                           value)
      .getResult();
}

Value LocalEmitter::slice(Value value, int64_t dim, int64_t start,
                          int64_t limit) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> starts(type.getRank(), 0);
  SmallVector<int64_t> limits(type.getShape());
  SmallVector<int64_t> strides(type.getRank(), 1);
  starts[dim] = start;
  limits[dim] = limit;
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = limit - start;
  return SliceOp::create(builder, loc,
                         RankedTensorType::get(shape, type.getElementType()),
                         value, builder.getDenseI64ArrayAttr(starts),
                         builder.getDenseI64ArrayAttr(limits),
                         builder.getDenseI64ArrayAttr(strides))
      .getResult();
}

Value LocalEmitter::dynamicSlice(Value value, ValueRange starts,
                                 ArrayRef<int64_t> sizes) {
  auto type = cast<RankedTensorType>(value.getType());
  return DynamicSliceOp::create(builder, loc, type.clone(sizes), value, starts,
                                builder.getDenseI64ArrayAttr(sizes))
      .getResult();
}

Value LocalEmitter::pad(Value value, int64_t dim, int64_t rows) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape()), edges(type.getRank(), 0),
      none(type.getRank(), 0);
  shape[dim] += 2 * rows;
  edges[dim] = rows;
  return PadOp::create(builder, loc, type.clone(shape), value,
                       splat(type.clone(ArrayRef<int64_t>()), 0), edges, edges,
                       none)
      .getResult();
}

Value LocalEmitter::compare(Value lhs, Value rhs, ComparisonDirection direction,
                            ComparisonType type) {
  auto operand = cast<RankedTensorType>(lhs.getType());
  MLIRContext *ctx = builder.getContext();
  return CompareOp::create(
             builder, loc,
             RankedTensorType::get(operand.getShape(), builder.getI1Type()),
             lhs, rhs, ComparisonDirectionAttr::get(ctx, direction),
             ComparisonTypeAttr::get(ctx, type))
      .getResult();
}

Value LocalEmitter::select(Value mask, Value onTrue, Value onFalse) {
  return SelectOp::create(builder, loc, onTrue.getType(), mask, onTrue, onFalse)
      .getResult();
}

Value LocalEmitter::isFirstBlock(unsigned factor) {
  auto type = RankedTensorType::get({}, context.getIndexType(factor));
  return compare(context.getOffset(factor, type.getElementType()),
                 splat(type, 0), ComparisonDirection::EQ);
}

Value LocalEmitter::toSignedIndices(Value indices, int64_t maxValue) {
  auto type = cast<RankedTensorType>(indices.getType());
  unsigned width = 64;
  if (auto integer = dyn_cast<IntegerType>(type.getElementType())) {
    width = integer.getWidth() + (integer.isUnsigned() ? 1 : 0);
  }
  bool isNarrow =
      width <= 32 && maxValue <= std::numeric_limits<int32_t>::max();
  return convert(indices, builder.getIntegerType(isNarrow ? 32 : 64));
}

Value LocalEmitter::indexOffsets(RankedTensorType indices,
                                 int64_t indexVectorDim,
                                 ArrayRef<int64_t> factors) {
  Type element = indices.getElementType();
  auto isSplit = [&](int64_t factor) {
    return factor >= 0 && context.getNumShards(factor) > 1;
  };
  if (llvm::none_of(factors, isSplit)) {
    return {};
  }
  if (factors.size() == 1) {
    return broadcast(context.getOffset(factors[0], element), indices, -1);
  }
  auto oneType = RankedTensorType::get({1}, element);
  SmallVector<Value> components;
  for (int64_t factor : factors) {
    components.push_back(isSplit(factor)
                             ? reshape(context.getOffset(factor, element), {1})
                             : splat(oneType, 0));
  }
  auto vectorType =
      RankedTensorType::get({static_cast<int64_t>(factors.size())}, element);
  Value offsets = ConcatenateOp::create(builder, loc, vectorType, components,
                                        builder.getI64IntegerAttr(0))
                      .getResult();
  return broadcast(offsets, indices, indexVectorDim);
}
