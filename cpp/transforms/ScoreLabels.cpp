//===- ScoreLabels.cpp - Dimensions of attention's scores -----------------===//

#include "cpp/transforms/ScoreLabels.h"

#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

using stablehlo::BroadcastInDimOp;
using stablehlo::ConvertOp;
using stablehlo::ReshapeOp;
using stablehlo::TransposeOp;

std::optional<ArrayRef<int64_t>> getStaticShape(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type && type.hasStaticShape() ? std::optional(type.getShape())
                                       : std::nullopt;
}

Labels getOwnLabels(ArrayRef<int64_t> shape) {
  Labels labels;
  for (auto [dim, size] : llvm::enumerate(shape)) {
    labels.push_back(size == 1 ? kUnit : static_cast<int>(dim));
  }
  return labels;
}

bool isElementwise(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumRegions() != 0 ||
      !(op->hasTrait<OpTrait::Elementwise>() ||
        isa<ConvertOp, stablehlo::BitcastConvertOp, stablehlo::SelectOp,
            stablehlo::ClampOp>(op))) {
    return false;
  }
  std::optional<ArrayRef<int64_t>> shape = getStaticShape(op->getResult(0));
  return shape && llvm::all_of(op->getOperands(), [&](Value operand) {
           std::optional<ArrayRef<int64_t>> own = getStaticShape(operand);
           return own && (*own == *shape || own->empty());
         });
}

bool isMovement(Operation *op) {
  return isa<BroadcastInDimOp, ReshapeOp, TransposeOp>(op);
}

/// Labels of one shape from those of another with the same elements, where they
/// differ by dimensions of one element.
static std::optional<Labels>
moveUnits(const Labels &labels, ArrayRef<int64_t> from, ArrayRef<int64_t> to) {
  Labels moved(to.size(), kUnit);
  size_t source = 0;
  for (auto [dim, size] : llvm::enumerate(to)) {
    if (size == 1) {
      continue;
    }
    while (source < from.size() && from[source] == 1) {
      ++source;
    }
    if (source == from.size() || from[source] != size) {
      return std::nullopt;
    }
    moved[dim] = labels[source++];
  }
  return llvm::all_of(from.drop_front(source),
                      [](int64_t size) { return size == 1; })
             ? std::optional(moved)
             : std::nullopt;
}

std::optional<Labels> getOperandLabels(OpOperand &operand,
                                       const Labels &result) {
  Operation *op = operand.getOwner();
  std::optional<ArrayRef<int64_t>> shape = getStaticShape(operand.get());
  if (!shape) {
    return std::nullopt;
  }
  Labels labels(shape->size(), kUnit);
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    for (auto [dim, source] : llvm::enumerate(transpose.getPermutation())) {
      labels[source] = result[dim];
    }
    return labels;
  }
  if (auto broadcast = dyn_cast<BroadcastInDimOp>(op)) {
    for (auto [dim, target] :
         llvm::enumerate(broadcast.getBroadcastDimensions())) {
      labels[dim] = (*shape)[dim] == 1 ? kUnit : result[target];
    }
    return labels;
  }
  if (isa<ReshapeOp>(op)) {
    return moveUnits(result, *getStaticShape(op->getResult(0)), *shape);
  }
  if (!isElementwise(op)) {
    return std::nullopt;
  }
  return shape->size() == result.size() ? result : labels;
}

std::optional<Labels> getResultLabels(OpOperand &operand,
                                      const Labels &labels) {
  Operation *op = operand.getOwner();
  if (auto transpose = dyn_cast<TransposeOp>(op)) {
    Labels result;
    for (int64_t source : transpose.getPermutation()) {
      result.push_back(labels[source]);
    }
    return result;
  }
  if (isa<ReshapeOp>(op)) {
    return moveUnits(labels, *getStaticShape(operand.get()),
                     *getStaticShape(op->getResult(0)));
  }
  if (!isElementwise(op) ||
      getStaticShape(op->getResult(0))->size() != labels.size()) {
    return std::nullopt;
  }
  return labels;
}

SmallVector<int> ScoreDims::getOrder() const {
  SmallVector<int> order(batch);
  llvm::append_range(order, rows);
  order.push_back(key);
  return order;
}

SmallVector<int64_t> ScoreDims::getOrderedShape() const {
  return llvm::map_to_vector(getOrder(), [&](int dim) { return shape[dim]; });
}

bool ScoreDims::isWhole(const Labels &labels) const {
  for (auto [dim, size] : llvm::enumerate(shape)) {
    if (size != 1 && llvm::count(labels, static_cast<int>(dim)) != 1) {
      return false;
    }
  }
  return true;
}

bool ScoreDims::isPerScore(const Labels &labels) const {
  return llvm::is_contained(labels, key) && llvm::any_of(rows, [&](int dim) {
           return llvm::is_contained(labels, dim);
         });
}

} // namespace mlir::alpa
