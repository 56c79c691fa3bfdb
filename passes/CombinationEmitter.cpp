//===- CombinationEmitter.cpp - Combining what devices have ---------------===//

#include "cpp/analysis/Combination.h"
#include "dialects/alpa/GatheredDimension.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "passes/CollectiveEmitter.h"
#include "stablehlo/dialect/StablehloOps.h"
#include <numeric>

namespace mlir::alpa {

static StringRef getCombinerName(ReductionKind kind, Type elementType) {
  bool isBool = elementType.isInteger(1);
  switch (kind) {
  case ReductionKind::Sum:
    return isBool ? "stablehlo.or" : "stablehlo.add";
  case ReductionKind::Product:
    return isBool ? "stablehlo.and" : "stablehlo.multiply";
  case ReductionKind::Max:
    return "stablehlo.maximum";
  case ReductionKind::Min:
    return "stablehlo.minimum";
  case ReductionKind::And:
    return "stablehlo.and";
  case ReductionKind::Or:
    return "stablehlo.or";
  }
  llvm_unreachable("unknown reduction");
}

std::unique_ptr<Region> CollectiveEmitter::makeCombiner(Type elementType,
                                                        ReductionKind kind,
                                                        Location loc) {
  OpBuilder::InsertionGuard guard(builder);
  auto region = std::make_unique<Region>();
  auto *block = new Block();
  region->push_back(block);
  Type scalar = RankedTensorType::get({}, elementType);
  block->addArguments({scalar, scalar}, {loc, loc});
  builder.setInsertionPointToEnd(block);
  Operation *combined = create(getCombinerName(kind, elementType),
                               block->getArguments(), scalar, {}, loc);
  create("stablehlo.return", combined->getResults(), {}, {}, loc);
  return region;
}

Value CollectiveEmitter::emitAllReduce(Value local, ArrayRef<unsigned> axes,
                                       ReductionKind kind, Location loc) {
  auto type = cast<RankedTensorType>(local.getType());
  return create("stablehlo.all_reduce", local, type,
                {getChannel(), getReplicaGroups(axes), getGlobalIds()}, loc,
                makeCombiner(type.getElementType(), kind, loc))
      ->getResult(0);
}

static RankedTensorType withElement(Value value, Type element) {
  return cast<RankedTensorType>(value.getType()).clone(element);
}

/// before: combination of x over n devices
/// after:  reduce(all_gather(reshape(x) to 1 x ...) to n x ..., over n), or the
///         n behind a vector
Value CollectiveEmitter::emitGathered(Value local, ArrayRef<unsigned> axes,
                                      ReductionKind kind, Location loc) {
  auto type = cast<RankedTensorType>(local.getType());
  SmallVector<int64_t> shape(type.getShape());
  int64_t dim = getGatheredDim(shape);
  shape.insert(shape.begin() + dim, 1);
  Value block = create("stablehlo.reshape", local, type.clone(shape), {}, loc)
                    ->getResult(0);
  Value all = emitGather(block, dim, axes, loc);
  // All bits of -1 are set.
  Value neutral = emitScalar(type.getElementType(),
                             kind == ReductionKind::And ? -1 : 0, loc);
  return create("stablehlo.reduce", {all, neutral}, type,
                builder.getNamedAttr("dimensions",
                                     builder.getDenseI64ArrayAttr({dim})),
                loc, makeCombiner(type.getElementType(), kind, loc))
      ->getResult(0);
}

/// The bits of a float are a sign and a magnitude; with the magnitude of
/// negative ones flipped they order as integers. NaN becomes the greatest of
/// them for a maximum, the least for a minimum. The same map leads back.
///
///   before: maximum of x
///   after:  k = order(bits(x)); k = x != x ? greatest : k
///           x = bits(order(maximum of k))  where order(k) = k ^ (k >> 31 &
///           max)
Value CollectiveEmitter::emitOrdered(Value local, ArrayRef<unsigned> axes,
                                     ReductionKind kind, Location loc) {
  auto type = cast<RankedTensorType>(local.getType());
  unsigned width = type.getElementTypeBitWidth();
  RankedTensorType bits = withElement(local, builder.getIntegerType(width));
  auto apply = [&](StringRef name, ValueRange operands, Type result) {
    return create(name, operands, result, {}, loc)->getResult(0);
  };
  auto fill = [&](int64_t number) {
    Value scalar = emitScalar(bits.getElementType(), number, loc);
    return create("stablehlo.broadcast_in_dim", scalar, bits,
                  builder.getNamedAttr("broadcast_dimensions",
                                       builder.getDenseI64ArrayAttr({})),
                  loc)
        ->getResult(0);
  };
  int64_t greatest = llvm::maxIntN(width), least = llvm::minIntN(width);
  auto order = [&](Value key) {
    Value sign =
        apply("stablehlo.shift_right_arithmetic", {key, fill(width - 1)}, bits);
    Value flipped = apply("stablehlo.and", {sign, fill(greatest)}, bits);
    return apply("stablehlo.xor", {key, flipped}, bits);
  };
  auto isUnequal = builder.getNamedAttr(
      "comparison_direction",
      stablehlo::ComparisonDirectionAttr::get(
          builder.getContext(), stablehlo::ComparisonDirection::NE));
  Value isNaN = create("stablehlo.compare", {local, local},
                       withElement(local, builder.getI1Type()), isUnequal, loc)
                    ->getResult(0);
  Value last = fill(kind == ReductionKind::Max ? greatest : least);
  Value key = order(apply("stablehlo.bitcast_convert", local, bits));
  key = apply("stablehlo.select", {isNaN, last, key}, bits);
  key = order(emitAllReduce(key, axes, kind, loc));
  return apply("stablehlo.bitcast_convert", key, type);
}

Value CollectiveEmitter::emitCombination(Value local, ArrayRef<unsigned> axes,
                                         ReductionKind kind, Location loc) {
  auto type = cast<RankedTensorType>(local.getType());
  Type element = type.getElementType();
  Combination form = getCombination(kind, element);
  auto convert = [&](Value value, Type target) {
    return create("stablehlo.convert", value, withElement(value, target), {},
                  loc)
        ->getResult(0);
  };
  if (form.valueType != element) {
    Value wide = convert(local, form.valueType);
    return convert(emitCombination(wide, axes, kind, loc), element);
  }
  if (form.wireType != form.valueType) {
    return emitOrdered(local, axes, kind, loc);
  }
  return form.collective == CollectiveKind::AllGather
             ? emitGathered(local, axes, kind, loc)
             : emitAllReduce(local, axes, kind, loc);
}

Value CollectiveEmitter::emitFirst(Value local, Location loc) {
  if (mesh.getNumDevices() == 1) {
    return local;
  }
  SmallVector<unsigned> axes(meshShape.size());
  std::iota(axes.begin(), axes.end(), 0u);
  return emitCombination(emitMask(axes, local, loc), axes, ReductionKind::Sum,
                         loc);
}

} // namespace mlir::alpa
