//===- ScoreRegion.cpp - A function of every single score -----------------===//

#include "cpp/transforms/ScoreRegion.h"

#include "dialects/alpa/Alpa.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

using stablehlo::BroadcastInDimOp;
using stablehlo::ConstantOp;
using stablehlo::ConvertOp;
using stablehlo::IotaOp;
using stablehlo::ReshapeOp;
using stablehlo::TransposeOp;

/// Where a dimension of the scores is in their order.
static int64_t getPosition(const ScoreDims &dims, int dim) {
  SmallVector<int> order = dims.getOrder();
  return std::distance(order.begin(), llvm::find(order, dim));
}

/// Dimensions of an extra that are some of the scores', in their order.
static SmallVector<int64_t> getOrderOf(const ScoreDims &dims,
                                       const ScoreExtra &extra) {
  SmallVector<int64_t> order;
  for (auto [dim, label] : llvm::enumerate(extra.labels)) {
    if (label != kUnit) {
      order.push_back(static_cast<int64_t>(dim));
    }
  }
  llvm::sort(order, [&](int64_t lhs, int64_t rhs) {
    return getPosition(dims, extra.labels[lhs]) <
           getPosition(dims, extra.labels[rhs]);
  });
  return order;
}

SmallVector<int64_t> ScoreRegion::getExtraDims(const ScoreDims &dims,
                                               const ScoreExtra &extra) {
  return llvm::map_to_vector(getOrderOf(dims, extra), [&](int64_t dim) {
    return getPosition(dims, extra.labels[dim]);
  });
}

Value ScoreRegion::emitExtra(OpBuilder &builder, const ScoreDims &dims,
                             const ScoreExtra &extra) {
  auto type = cast<RankedTensorType>(extra.value.getType());
  Location loc = extra.value.getLoc();
  SmallVector<int64_t> order = getOrderOf(dims, extra), kept(order);
  llvm::sort(kept);
  Value value = extra.value;
  auto sizesOf = [&](ArrayRef<int64_t> of) {
    return llvm::map_to_vector(
        of, [&](int64_t dim) { return type.getDimSize(dim); });
  };
  if (kept.size() != extra.labels.size()) {
    value = ReshapeOp::create(builder, loc, type.clone(sizesOf(kept)), value);
  }
  if (kept != order) {
    SmallVector<int64_t> permutation =
        llvm::map_to_vector(order, [&](int64_t dim) {
          return static_cast<int64_t>(
              std::distance(kept.begin(), llvm::find(kept, dim)));
        });
    value = TransposeOp::create(builder, loc, type.clone(sizesOf(order)), value,
                                builder.getDenseI64ArrayAttr(permutation));
  }
  return value;
}

ScoreRegion::ScoreRegion(MLIRContext *context, const ScoreDims &dims,
                         std::vector<ScoreExtra> &extras, RandomBits &bits)
    : dims(dims), extras(extras), bits(bits),
      region(std::make_unique<Region>()), builder(context) {
  region->emplaceBlock();
  builder.setInsertionPointToEnd(&region->front());
}

RankedTensorType ScoreRegion::getScoreType(Type like) const {
  return RankedTensorType::get(dims.getOrderedShape(),
                               getElementTypeOrSelf(like));
}

BlockArgument ScoreRegion::addNumbers(Type elementType) {
  ++numNumbers;
  return region->front().addArgument(getScoreType(elementType),
                                     builder.getUnknownLoc());
}

void ScoreRegion::addArguments() {
  Block &block = region->front();
  while (block.getNumArguments() < numNumbers + extras.size()) {
    const ScoreExtra &extra = extras[block.getNumArguments() - numNumbers];
    auto type = cast<RankedTensorType>(extra.value.getType());
    SmallVector<int64_t> shape =
        llvm::map_to_vector(getOrderOf(dims, extra),
                            [&](int64_t dim) { return type.getDimSize(dim); });
    block.addArgument(type.clone(shape), extra.value.getLoc());
  }
}

Value ScoreRegion::splat(Type elementType, double number) {
  RankedTensorType type = getScoreType(elementType);
  Attribute element = builder.getFloatAttr(elementType, number);
  return ConstantOp::create(builder, builder.getUnknownLoc(), type,
                            DenseElementsAttr::get(type, element));
}

Value ScoreRegion::negate(Value mask) {
  return stablehlo::NotOp::create(builder, mask.getLoc(), mask.getType(), mask);
}

void ScoreRegion::yield(ValueRange values) {
  YieldOp::create(builder, values.front().getLoc(), values);
}

Value ScoreRegion::convert(Value value, Type elementType) {
  RankedTensorType type = getScoreType(elementType);
  return value.getType() == type
             ? value
             : ConvertOp::create(builder, value.getLoc(), type, value)
                   .getResult();
}

std::unique_ptr<Region> ScoreRegion::take() {
  addArguments();
  return std::move(region);
}

Value ScoreRegion::write(Value value, const Labels &labels, Find find) {
  std::pair<void *, std::vector<int>> entry{
      value.getAsOpaquePointer(),
      std::vector<int>(labels.begin(), labels.end())};
  auto it = known.find(entry);
  if (it != known.end()) {
    return it->second;
  }
  Value made = find(value, labels);
  if (!made) {
    made = make(value, labels, find);
  }
  known[entry] = made;
  return made;
}

Value ScoreRegion::make(Value value, const Labels &labels, Find find) {
  Operation *op = value.getDefiningOp();
  if (!op) {
    return getExtra(value, labels);
  }
  RankedTensorType type = getScoreType(value.getType());
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (elements && elements.isSplat()) {
      return ConstantOp::create(builder, op->getLoc(), type,
                                elements.resizeSplat(type));
    }
  }
  if (auto iota = dyn_cast<IotaOp>(op)) {
    if ((*getStaticShape(value))[iota.getIotaDimension()] == 1) {
      return ConstantOp::create(builder, op->getLoc(), type,
                                cast<ElementsAttr>(builder.getZeroAttr(type)));
    }
    if (int dim = labels[iota.getIotaDimension()]; dim != kUnit) {
      return IotaOp::create(builder, op->getLoc(), type,
                            builder.getI64IntegerAttr(getPosition(dims, dim)));
    }
  }
  if (isMovement(op)) {
    std::optional<Labels> own = getOperandLabels(op->getOpOperand(0), labels);
    return own ? write(op->getOperand(0), *own, find) : getExtra(value, labels);
  }
  if (std::optional<llvm::APInt> number = getKnownInteger(value)) {
    return ConstantOp::create(builder, op->getLoc(), type,
                              DenseElementsAttr::get(type, *number));
  }
  if (Value same = dims.isPerScore(labels) ? bits.expand(value) : Value()) {
    return write(same, labels, find);
  }
  return isElementwise(op) && dims.isPerScore(labels)
             ? makeElementwise(op, labels, find)
             : getExtra(value, labels);
}

Value ScoreRegion::makeElementwise(Operation *op, const Labels &labels,
                                   Find find) {
  IRMapping mapping;
  for (OpOperand &operand : op->getOpOperands()) {
    Value made = write(operand.get(), *getOperandLabels(operand, labels), find);
    if (!made) {
      return {};
    }
    mapping.map(operand.get(), made);
  }
  Operation *made = builder.clone(*op, mapping);
  made->getResult(0).setType(getScoreType(op->getResult(0).getType()));
  made->setDiscardableAttrs(ArrayRef<NamedAttribute>());
  return made->getResult(0);
}

Value ScoreRegion::getExtra(Value value, const Labels &labels) {
  if (!getStaticShape(value)) {
    return {};
  }
  auto it = llvm::find_if(extras, [&](const ScoreExtra &extra) {
    return extra.value == value && extra.labels == labels;
  });
  size_t index = std::distance(extras.begin(), it);
  if (it == extras.end()) {
    extras.push_back({value, labels});
  }
  addArguments();
  Value argument = region->front().getArgument(numNumbers + index);
  return BroadcastInDimOp::create(
      builder, value.getLoc(), getScoreType(value.getType()), argument,
      builder.getDenseI64ArrayAttr(getExtraDims(dims, extras[index])));
}

} // namespace mlir::alpa
