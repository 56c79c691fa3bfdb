//===- AttentionMasks.cpp - Scores that nobody sees -----------------------===//

#include "dialects/stablehlo/ShardingRules/AttentionBlocks.h"
#include "dialects/stablehlo/ShardingRules/KnownValues.h"
#include "mlir/Analysis/SliceAnalysis.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include <limits>

using namespace mlir;
using namespace mlir::stablehlo;

/// What masks put in the place of scores is lower (heuristic): -1e9, the lowest
/// number of a type, minus infinity.
static constexpr double kLow = -1e3;

/// Operators of a region that a value is made of, in order; none where it is
/// made of scores.
static std::optional<SetVector<Operation *>> getMakers(Value value,
                                                       Region &region) {
  BackwardSliceOptions options;
  options.inclusive = true;
  SetVector<Operation *> makers;
  if (!value.getDefiningOp() ||
      failed(getBackwardSlice(value, &makers, options))) {
    return std::nullopt;
  }
  Value scores = region.getArgument(0);
  bool isOfScores = llvm::any_of(makers, [&](Operation *maker) {
    return llvm::is_contained(maker->getOperands(), scores);
  });
  return isOfScores ? std::nullopt : std::optional(makers);
}

std::optional<ScoreMask> stablehlo::findMask(Region &region) {
  ScoreMask mask{{}, -std::numeric_limits<double>::infinity()};
  Value value = region.front().getTerminator()->getOperand(0);
  while (Operation *op = value.getDefiningOp()) {
    if (auto convert = dyn_cast<ConvertOp>(op)) {
      // A low number may become another one in a narrower type.
      Type from = getElementTypeOrSelf(convert.getOperand().getType());
      Type to = getElementTypeOrSelf(convert.getResult().getType());
      if (!isa<FloatType>(from) || !isa<FloatType>(to) ||
          from.getIntOrFloatBitWidth() >= to.getIntOrFloatBitWidth()) {
        break;
      }
      value = convert.getOperand();
      continue;
    }
    auto select = dyn_cast<SelectOp>(op);
    if (!select || !getMakers(select.getPred(), region)) {
      break;
    }
    auto isLow = [](Value branch) {
      std::optional<double> number = getKnownSplat(branch);
      return number && *number < kLow ? number : std::nullopt;
    };
    bool isSeenWhenTrue = isLow(select.getOnFalse()).has_value();
    std::optional<double> low =
        isLow(isSeenWhenTrue ? select.getOnFalse() : select.getOnTrue());
    if (!low) {
      break;
    }
    mask.low = std::max(mask.low, *low);
    mask.seen.push_back({select.getPred(), isSeenWhenTrue});
    value = isSeenWhenTrue ? select.getOnTrue() : select.getOnFalse();
  }
  return mask.seen.empty() ? std::nullopt : std::optional(mask);
}

bool stablehlo::isTriangular(const ScoreMask &mask, Region &region) {
  int64_t last = BlockEmitter::getType(region.getArgument(0)).getRank() - 1;
  // Whether a value ascends along rows, along keys.
  auto findIotas = [&](Value value) {
    std::pair<bool, bool> found;
    for (Operation *maker :
         getMakers(value, region).value_or(SetVector<Operation *>())) {
      if (auto iota = dyn_cast<IotaOp>(maker)) {
        bool isOfKeys = static_cast<int64_t>(iota.getIotaDimension()) == last;
        (isOfKeys ? found.second : found.first) = true;
      }
    }
    return found;
  };
  auto isDiagonal = [&](Operation *op) {
    auto compare = dyn_cast<CompareOp>(op);
    if (!compare ||
        compare.getComparisonDirection() == ComparisonDirection::EQ ||
        compare.getComparisonDirection() == ComparisonDirection::NE) {
      return false;
    }
    std::pair<bool, bool> lhs = findIotas(compare.getLhs()),
                          rhs = findIotas(compare.getRhs());
    return lhs.first != lhs.second && rhs.first != rhs.second &&
           lhs.first != rhs.first;
  };
  return llvm::any_of(mask.seen, [&](const std::pair<Value, bool> &seen) {
    return llvm::any_of(*getMakers(seen.first, region), isDiagonal);
  });
}

Value stablehlo::emitSeen(BlockEmitter &emit, Region &region,
                          const ScoreMask &mask, ArrayRef<int64_t> shape,
                          ArrayRef<Value> extras, ArrayRef<Value> offsets) {
  Block &block = region.front();
  IRMapping mapping;
  mapping.map(block.getArguments().drop_front(), extras);
  SetVector<Operation *> makers;
  for (auto [pred, isSeenWhenTrue] : mask.seen) {
    makers.insert_range(*getMakers(pred, region));
  }
  SmallVector<Operation *> operators = makers.takeVector();
  llvm::sort(operators, [](Operation *lhs, Operation *rhs) {
    return lhs->isBeforeInBlock(rhs);
  });
  emitOperators(emit, operators, shape, offsets, mapping);
  Value seen;
  for (auto [pred, isSeenWhenTrue] : mask.seen) {
    Value own = mapping.lookup(pred);
    if (!isSeenWhenTrue) {
      own = emit.negate(own);
    }
    seen = seen ? emit.binary<AndOp>(seen, own) : own;
  }
  return emit.reduceAll<OrOp>(seen, 0);
}
