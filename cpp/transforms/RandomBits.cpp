//===- RandomBits.cpp - Random bits by their positions --------------------===//

#include "cpp/transforms/RandomBits.h"

#include "cpp/transforms/ScoreLabels.h"
#include "dialects/stablehlo/DataFlow/TripCount.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

using stablehlo::SliceOp;
using stablehlo::WhileOp;

/// Threefry has five turns of four rounds; what has more is something else
/// (heuristic).
static constexpr int64_t kMostTurns = 8;

RandomBits::~RandomBits() {
  for (Operation *op : llvm::reverse(written)) {
    if (op->use_empty()) {
      op->erase();
    }
  }
}

Value RandomBits::expand(Value value) {
  auto loop = value.getDefiningOp<WhileOp>();
  if (!loop) {
    return {};
  }
  if (!made.contains(value) && !unroll(loop)) {
    return {};
  }
  return made.lookup(value);
}

static bool isOfPositions(Operation &op) {
  return isElementwise(&op) || isMovement(&op) ||
         isa<SliceOp, stablehlo::ConstantOp>(op);
}

bool RandomBits::unroll(WhileOp loop) {
  std::optional<int64_t> count = stablehlo::getTripCount(loop);
  Block &turn = loop.getBody().front();
  if (!count || *count > kMostTurns ||
      !llvm::all_of(turn.without_terminator(), isOfPositions)) {
    return false;
  }
  OpBuilder builder(loop);
  SmallVector<Value> carried(loop.getOperands());
  for (int64_t number = 0; number < *count; ++number) {
    IRMapping mapping;
    mapping.map(turn.getArguments(), carried);
    for (Operation &op : turn.without_terminator()) {
      written.push_back(builder.clone(op, mapping));
    }
    carried = llvm::map_to_vector(
        turn.getTerminator()->getOperands(),
        [&](Value next) { return mapping.lookupOrDefault(next); });
  }
  for (auto [result, last] : llvm::zip_equal(loop.getResults(), carried)) {
    made[result] = last;
  }
  return true;
}

static std::optional<llvm::APInt> getElement(stablehlo::ConstantOp constant,
                                             int64_t index) {
  auto elements = dyn_cast<DenseIntElementsAttr>(constant.getValue());
  return elements ? std::optional(elements.getValues<llvm::APInt>()[index])
                  : std::nullopt;
}

std::optional<llvm::APInt> getKnownInteger(Value value) {
  Operation *op = value.getDefiningOp();
  auto type = dyn_cast<RankedTensorType>(value.getType());
  auto element =
      type ? dyn_cast<IntegerType>(type.getElementType()) : IntegerType();
  if (!op || !element || !type.hasStaticShape() || type.getNumElements() != 1) {
    return std::nullopt;
  }
  if (auto constant = dyn_cast<stablehlo::ConstantOp>(op)) {
    return getElement(constant, 0);
  }
  if (auto slice = dyn_cast<SliceOp>(op)) {
    auto constant = slice.getOperand().getDefiningOp<stablehlo::ConstantOp>();
    return constant && type.getRank() == 1
               ? getElement(constant, slice.getStartIndices().front())
               : std::nullopt;
  }
  bool isSum = isa<stablehlo::AddOp, stablehlo::SubtractOp>(op);
  if (!isSum && !isa<stablehlo::ReshapeOp, stablehlo::ConvertOp>(op)) {
    return std::nullopt;
  }
  std::optional<llvm::APInt> lhs = getKnownInteger(op->getOperand(0));
  if (!lhs) {
    return std::nullopt;
  }
  if (isSum) {
    std::optional<llvm::APInt> rhs = getKnownInteger(op->getOperand(1));
    return !rhs                        ? std::nullopt
           : isa<stablehlo::AddOp>(op) ? std::optional(*lhs + *rhs)
                                       : std::optional(*lhs - *rhs);
  }
  auto from =
      cast<IntegerType>(getElementTypeOrSelf(op->getOperand(0).getType()));
  if (element.getWidth() == 1 && from.getWidth() != 1) {
    return std::nullopt;
  }
  return from.isUnsigned() || from.getWidth() == 1
             ? lhs->zextOrTrunc(element.getWidth())
             : lhs->sextOrTrunc(element.getWidth());
}

} // namespace mlir::alpa
