//===- TripCount.cpp - How often a loop runs ------------------------------===//

#include "dialects/stablehlo/DataFlow/TripCount.h"

#include "mlir/IR/Matchers.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::stablehlo {

/// The integer that a scalar value is, seen through the operands of the loop.
static std::optional<APInt> getConstant(Value value, WhileOp loop) {
  // A carried value that the body hands on unchanged is its initial value.
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument && argument.getOwner()->getParentOp() == loop) {
    unsigned index = argument.getArgNumber();
    Block &body = loop.getBody().front();
    if (index >= loop->getNumOperands() ||
        body.getTerminator()->getOperand(index) != body.getArgument(index)) {
      return std::nullopt;
    }
    value = loop->getOperand(index);
  }
  DenseIntElementsAttr elements;
  if (!matchPattern(value, m_Constant(&elements)) ||
      elements.getNumElements() != 1) {
    return std::nullopt;
  }
  return *elements.value_begin<APInt>();
}

/// Turns of a counter that grows while it is less than a limit, or at most it.
static std::optional<int64_t> getTurns(const APInt &start, const APInt &limit,
                                       const APInt &increment, bool isUnsigned,
                                       bool reachesLimit) {
  // Differences of 64-bit integers, and one more, are exact in twice as many.
  auto widen = [&](const APInt &value) {
    return isUnsigned ? value.zext(128) : value.sext(128);
  };
  APInt step = widen(increment);
  if (!step.isStrictlyPositive()) {
    return std::nullopt;
  }
  APInt span = widen(limit) - widen(start) + (reachesLimit ? 1 : 0);
  if (!span.isStrictlyPositive()) {
    return 0;
  }
  APInt turns = (span + step - 1).udiv(step);
  return turns.isSignedIntN(64) ? std::optional(turns.getSExtValue())
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
  std::optional<APInt> limit = getConstant(compare.getRhs(), loop);
  std::optional<APInt> start = getConstant(loop->getOperand(index), loop);
  std::optional<APInt> increment = getConstant(step.getRhs(), loop);
  if (!limit || !start || !increment) {
    return std::nullopt;
  }
  return getTurns(*start, *limit, *increment,
                  getElementTypeOrSelf(counter).isUnsignedInteger(),
                  direction == ComparisonDirection::LE);
}

} // namespace mlir::stablehlo
