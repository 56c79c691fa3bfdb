//===- TripCount.cpp - How often a loop runs ------------------------------===//

#include "dialects/stablehlo/DataFlow/TripCount.h"

#include "mlir/IR/Matchers.h"

namespace mlir::stablehlo {

/// The integer that a scalar value is, seen through the operands of the loop.
static std::optional<int64_t> getConstant(Value value, WhileOp loop) {
  DenseIntElementsAttr elements;
  if (matchPattern(value, m_Constant(&elements)) &&
      elements.getNumElements() == 1) {
    return (*elements.value_begin<APInt>()).getSExtValue();
  }
  // A carried value that the body hands on unchanged is its initial value.
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument || argument.getOwner()->getParentOp() != loop) {
    return std::nullopt;
  }
  unsigned index = argument.getArgNumber();
  Block &body = loop.getBody().front();
  if (index >= loop->getNumOperands() ||
      body.getTerminator()->getOperand(index) != body.getArgument(index)) {
    return std::nullopt;
  }
  return matchPattern(loop->getOperand(index), m_Constant(&elements)) &&
                 elements.getNumElements() == 1
             ? std::optional<int64_t>(
                   (*elements.value_begin<APInt>()).getSExtValue())
             : std::nullopt;
}

std::optional<int64_t> getTripCount(WhileOp loop) {
  if (loop.getCond().empty() || loop.getBody().empty()) {
    return std::nullopt;
  }
  Operation *condition = loop.getCond().front().getTerminator();
  if (condition->getNumOperands() != 1) {
    return std::nullopt;
  }
  auto compare = condition->getOperand(0).getDefiningOp<CompareOp>();
  if (!compare) {
    return std::nullopt;
  }
  ComparisonDirection direction = compare.getComparisonDirection();
  auto counter = dyn_cast<BlockArgument>(compare.getLhs());
  if ((direction != ComparisonDirection::LT &&
       direction != ComparisonDirection::LE) ||
      !counter || counter.getOwner() != &loop.getCond().front() ||
      counter.getArgNumber() >= loop->getNumOperands()) {
    return std::nullopt;
  }
  unsigned index = counter.getArgNumber();
  Block &body = loop.getBody().front();
  auto step = body.getTerminator()->getOperand(index).getDefiningOp<AddOp>();
  if (!step || step.getLhs() != body.getArgument(index)) {
    return std::nullopt;
  }
  std::optional<int64_t> limit = getConstant(compare.getRhs(), loop);
  std::optional<int64_t> start = getConstant(loop->getOperand(index), loop);
  std::optional<int64_t> increment = getConstant(step.getRhs(), loop);
  if (!limit || !start || !increment || *increment <= 0) {
    return std::nullopt;
  }
  int64_t last = direction == ComparisonDirection::LE ? 1 : 0;
  int64_t span = *limit - *start + last;
  return span <= 0 ? 0 : (span + *increment - 1) / *increment;
}

} // namespace mlir::stablehlo
