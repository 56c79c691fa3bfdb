//===- DataMovement.cpp - Rules of shape changing operators ---------------===//
//
// broadcast_in_dim, reshape, transpose and pad.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/BlockMoves.h"
#include "dialects/stablehlo/ShardingRules/BlockWindows.h"
#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/Halo.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "dialects/stablehlo/ShardingRules/ShardingRules.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"
#include <numeric>
#include <tuple>

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::Exchange;
using alpa::LocalContext;
using alpa::OperatorRole;
using alpa::ShardingRule;

namespace {

void addLinear(RuleBuilder &builder, Operation *op,
               ArrayRef<unsigned> operands) {
  if (isSummable(op->getResult(0).getType())) {
    builder.getRule().addLinear(operands);
  }
}

struct BroadcastInDimRule : RuleModel<BroadcastInDimRule, BroadcastInDimOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto broadcast = cast<BroadcastInDimOp>(op);
    RuleBuilder builder(op);
    SmallVector<bool> isShared(builder.getResultRank(0), false);
    for (auto [dim, target] :
         llvm::enumerate(broadcast.getBroadcastDimensions())) {
      if (builder.getOperandSize(0, dim) != 1 && target >= 0 &&
          target < builder.getResultRank(0)) {
        builder.share(0, dim, 0, target);
        isShared[target] = true;
      }
    }
    for (auto [dim, shared] : llvm::enumerate(isShared)) {
      if (!shared) {
        builder.appendResult(
            0, dim, builder.addParallel(builder.getResultSize(0, dim)));
      }
    }
    addLinear(builder, op, {0});
    return builder.finish();
  }
  OperatorRole getOperatorRole(Operation *) const {
    return OperatorRole::Rematerialized;
  }
};

/// Splits and merges dimensions into the loops that both sides have in common,
/// major to minor: [6, 4] -> [2, 12] has the loops 2, 3, 4. Where the sizes do
/// not divide, [6, 4] -> [4, 6], the major common divisor is a loop and what is
/// minor to it, up to the next place where both sides are at the same element,
/// is replicated.
struct ReshapeRule : RuleModel<ReshapeRule, ReshapeOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    addLinear(builder, op, {0});
    Side source{builder.getOperandRank(0)}, target{builder.getResultRank(0)};
    auto sourceSize = [&](int64_t d) { return builder.getOperandSize(0, d); };
    auto targetSize = [&](int64_t d) { return builder.getResultSize(0, d); };
    while (source.advance(sourceSize) && target.advance(targetSize)) {
      int64_t common = std::gcd(source.rest, target.rest);
      if (common > 1) {
        DimFactors factors = builder.addParallel(common);
        builder.appendOperand(0, source.dim, factors);
        builder.appendResult(0, target.dim, factors);
        source.take(common);
        target.take(common);
        continue;
      }
      // Nothing in common: replicate until both sides meet again.
      do {
        Side &behind = source.done <= target.done ? source : target;
        bool isSource = &behind == &source;
        bool hasMore =
            isSource ? source.advance(sourceSize) : target.advance(targetSize);
        if (!hasMore) {
          builder.invalidate();
          return builder.finish();
        }
        DimFactors factors = builder.addReplicated(behind.rest);
        if (isSource) {
          builder.appendOperand(0, source.dim, factors);
        } else {
          builder.appendResult(0, target.dim, factors);
        }
        behind.take(behind.rest);
      } while (source.done != target.done);
    }
    return builder.finish();
  }
  OperatorRole getOperatorRole(Operation *) const {
    return OperatorRole::Follower;
  }

private:
  /// How far one side has been read.
  struct Side {
    explicit Side(int64_t rank) : rank(rank) {}
    int64_t rank;
    int64_t dim = -1;
    /// Iterations of `dim` that no factor covers yet.
    int64_t rest = 1;
    /// Product of all factors so far.
    int64_t done = 1;

    /// Moves to the next dimension with iterations left, if there is one.
    template <typename GetSize> bool advance(GetSize getSize) {
      while (rest == 1) {
        if (++dim >= rank) {
          return false;
        }
        rest = getSize(dim);
      }
      return rest > 1;
    }
    void take(int64_t size) {
      rest /= size;
      done *= size;
    }
  };
};

struct TransposeRule : RuleModel<TransposeRule, TransposeOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    for (auto [dim, source] :
         llvm::enumerate(cast<TransposeOp>(op).getPermutation())) {
      builder.share(0, source, 0, dim);
    }
    addLinear(builder, op, {0});
    return builder.finish();
  }
  OperatorRole getOperatorRole(Operation *) const {
    return OperatorRole::Follower;
  }
};

/// Whether padding is given of a dimension.
bool saysPadding(PadOp pad, int64_t dim) {
  return dim <
         static_cast<int64_t>(std::min({pad.getEdgePaddingLow().size(),
                                        pad.getEdgePaddingHigh().size(),
                                        pad.getInteriorPadding().size()}));
}

/// Whether a dimension becomes groups of elements, one of which is its own: the
/// gradient of `x[1::2]`.
bool putsOneInEach(PadOp pad, int64_t dim) {
  if (!saysPadding(pad, dim)) {
    return false;
  }
  int64_t low = pad.getEdgePaddingLow()[dim],
          high = pad.getEdgePaddingHigh()[dim],
          between = pad.getInteriorPadding()[dim];
  return low >= 0 && high >= 0 && between > 0 && low + high == between;
}

/// Whether a dimension has few elements among many: the gradient of `x[3]`.
/// Devices with a part of the result write what they have of them.
bool putsFewAmongMany(PadOp pad, int64_t dim) {
  if (!saysPadding(pad, dim)) {
    return false;
  }
  auto operand = cast<RankedTensorType>(pad.getOperand().getType());
  auto result = cast<RankedTensorType>(pad.getType());
  return pad.getEdgePaddingLow()[dim] >= 0 &&
         pad.getEdgePaddingHigh()[dim] >= 0 &&
         pad.getInteriorPadding()[dim] == 0 && dim < operand.getRank() &&
         operand.getDimSize(dim) > 0 &&
         2 * operand.getDimSize(dim) < result.getDimSize(dim);
}

/// The window of a dimension whose elements are moved on, as many as there
/// were: what `pad` has in front it lacks behind, or the other way round.
std::optional<Window> getMovedWindow(PadOp pad, int64_t dim) {
  if (dim >=
      static_cast<int64_t>(std::min({pad.getEdgePaddingLow().size(),
                                     pad.getEdgePaddingHigh().size(),
                                     pad.getInteriorPadding().size()}))) {
    return std::nullopt;
  }
  int64_t low = pad.getEdgePaddingLow()[dim];
  if (low == 0 || low != -pad.getEdgePaddingHigh()[dim] ||
      pad.getInteriorPadding()[dim] != 0) {
    return std::nullopt;
  }
  int64_t size = cast<RankedTensorType>(pad.getType()).getDimSize(dim);
  return Window{size, /*numTaps=*/1, size, /*stride=*/1, low};
}

/// How elements of a dimension come to lie in another block where devices send
/// them there.
std::optional<MovedDim> getMoved(PadOp pad, int64_t dim) {
  if (!saysPadding(pad, dim) || pad.getInteriorPadding()[dim] != 0 ||
      getMovedWindow(pad, dim)) {
    return std::nullopt;
  }
  int64_t low = pad.getEdgePaddingLow()[dim];
  int64_t from =
      cast<RankedTensorType>(pad.getOperand().getType()).getDimSize(dim);
  int64_t to = cast<RankedTensorType>(pad.getType()).getDimSize(dim);
  MovedRun run = {std::max<int64_t>(0, -low), std::max<int64_t>(0, low), 0};
  run.size = std::min(from - run.source, to - run.target);
  bool isMoved = from != to && run.size > 0 && canMoveBlocks(from, to) &&
                 std::gcd(from, to) > 1;
  return isMoved ? std::optional(MovedDim{dim, from, to, run}) : std::nullopt;
}

struct PadRule : RuleModel<PadRule, PadOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto pad = cast<PadOp>(op);
    RuleBuilder builder(op);
    auto isZero = [](ArrayRef<int64_t> values, int64_t dim) {
      return dim < static_cast<int64_t>(values.size()) && values[dim] == 0;
    };
    for (int64_t dim = 0; dim < builder.getResultRank(0); ++dim) {
      if (isZero(pad.getEdgePaddingLow(), dim) &&
          isZero(pad.getEdgePaddingHigh(), dim) &&
          isZero(pad.getInteriorPadding(), dim)) {
        builder.share(0, dim, 0, dim);
      } else if (putsOneInEach(pad, dim)) {
        builder.share(0, dim, 0, dim);
        builder.appendResult(
            0, dim, builder.addReplicated(pad.getInteriorPadding()[dim] + 1));
      } else if (std::optional<Window> window = getMovedWindow(pad, dim)) {
        WindowFactors factors = addWindow(builder, *window, /*isSum=*/false);
        builder.appendOperand(0, dim, factors.input);
        builder.appendResult(0, dim, factors.outputs);
      } else if (builder.isUsable() && getMoved(pad, dim)) {
        addMovedBlocks(builder, {0}, dim);
      } else if (builder.isUsable() && putsFewAmongMany(pad, dim)) {
        builder.appendResult(
            0, dim, builder.addParallel(builder.getResultSize(0, dim)));
      }
    }
    // A padding value is in the result once, not once per device.
    addLinear(builder, op, {0, 1});
    if (isKnownZero(pad.getPaddingValue())) {
      addLinear(builder, op, {0});
    }
    return builder.finish();
  }
  OperatorRole getOperatorRole(Operation *op) const {
    auto pad = cast<PadOp>(op);
    ShardingRule rule = getShardingRule(op);
    // No sharding of the operand says how the many are split.
    for (int64_t dim = 0; dim < pad.getType().getRank(); ++dim) {
      if (!rule.results[0][dim].empty() && putsFewAmongMany(pad, dim) &&
          !getMoved(pad, dim)) {
        return OperatorRole::Leader;
      }
    }
    return getRoleOf(rule);
  }

  SmallVector<Exchange> getExchanges(Operation *op, const ShardingRule &rule,
                                     unsigned factor,
                                     ArrayRef<int64_t> factorShards) const {
    auto getShards = [&](unsigned each) { return factorShards[each]; };
    auto pad = cast<PadOp>(op);
    double bytes = getBlockBytes(op->getOperand(0).getType(), rule.operands[0],
                                 factorShards);
    for (const auto &[moved, own] : getMovedDims(pad, rule, getShards)) {
      auto sourceSize = static_cast<double>(moved.sourceSize);
      auto numBlocks = static_cast<double>(factorShards[own]);
      if (own == factor) {
        return getMoveExchanges(moved, factorShards[own],
                                bytes * numBlocks / sourceSize);
      }
      bytes *= static_cast<double>(moved.targetSize) / sourceSize;
    }
    return getHaloExchanges(rule, 0, op->getOperand(0).getType(),
                            getInputs(getSplitDims(pad, rule, getShards)),
                            factor, factorShards);
  }

  /// before: y = pad(x) low = [1], high = [-1]
  /// after:  l = last row of the block in front; y = pad(concatenate(l, x))
  ///         low = [0], high = [-1]
  FailureOr<SmallVector<Value>> localize(Operation *op,
                                         LocalContext &context) const {
    auto pad = cast<PadOp>(op);
    const ShardingRule &rule = context.getRule();
    auto getShards = [&](unsigned each) { return context.getNumShards(each); };
    SmallVector<SplitDim> dims = getSplitDims(pad, rule, getShards);
    SmallVector<SplitMove> moves = getMovedDims(pad, rule, getShards);
    Value input = move(context.getOperands()[0], moves, context, op->getLoc());
    input = fetchHalo(context, input, getInputs(dims), context.getOperands()[1],
                      op->getLoc());
    SmallVector<Value> results = alpa::cloneLocal(op, context);
    auto local = cast<PadOp>(results.front().getDefiningOp());
    local.getOperandMutable().assign(input);
    SmallVector<int64_t> low(local.getEdgePaddingLow()),
        high(local.getEdgePaddingHigh());
    for (const SplitDim &dim : dims) {
      std::tie(low[dim.number], high[dim.number]) =
          dim.window.getLocalPadding(context.getNumShards(dim.input.factor));
    }
    for (const auto &[moved, factor] : moves) {
      low[moved.dim] = high[moved.dim] = 0;
    }
    SmallVector<std::pair<int64_t, unsigned>> windowed;
    for (auto [index, factors] : llvm::enumerate(rule.results[0])) {
      auto dim = static_cast<int64_t>(index);
      if (!factors.empty() && !rule.factors[factors.front()].isWindowed &&
          putsFewAmongMany(pad, dim) && getShards(factors.front()) > 1) {
        windowed.emplace_back(dim, factors.front());
        low[dim] = high[dim] = 0;
      }
    }
    local.setEdgePaddingLow(low);
    local.setEdgePaddingHigh(high);
    return windowed.empty() ? results
                            : writeBlocks(pad, local, windowed, context);
  }

private:
  static SmallVector<SplitMove>
  getMovedDims(PadOp pad, const ShardingRule &rule,
               function_ref<int64_t(unsigned)> getShards) {
    return findSplitMoves(rule, getShards,
                          [&](int64_t dim) { return getMoved(pad, dim); });
  }

  /// before: y = pad(x) low = [0], high = [8], x of 8 rows
  /// after:  devices send each other what they have of x, over the padding
  static Value move(Value value, ArrayRef<SplitMove> moves,
                    LocalContext &context, Location loc) {
    LocalEmitter emit(context, loc);
    for (const auto &[moved, factor] : moves) {
      auto type = cast<RankedTensorType>(value.getType());
      SmallVector<int64_t> shape(type.getShape());
      shape[moved.dim] = moved.targetSize / context.getNumShards(factor);
      Value padding =
          emit.broadcast(context.getOperands()[1], type.clone(shape), -1);
      value = moveBlocks(context, value, padding, moved, factor, loc);
    }
    return value;
  }

  /// before: y = pad(x) low = [2], high = [5], x of one row
  /// after:  s = clamp(2 - first row, 0, rows - 1)
  ///         b = broadcast(padding value)
  ///         y = dynamic_update_slice(b, select(s + first row == 2, x, b), s)
  static SmallVector<Value>
  writeBlocks(PadOp op, PadOp local,
              ArrayRef<std::pair<int64_t, unsigned>> windowed,
              LocalContext &context) {
    OpBuilder::InsertionGuard guard(context.getBuilder());
    context.getBuilder().setInsertionPointAfter(local);
    LocalEmitter emit(context, op.getLoc());
    BlockWindowEmitter blocks(context, emit, op.getLoc());
    auto type = cast<RankedTensorType>(local.getType());
    bool isNarrow = llvm::all_of(windowed, [&](auto split) {
      return context.getIndexType(split.second).getIntOrFloatBitWidth() <= 32;
    });
    auto index = RankedTensorType::get(
        {}, context.getBuilder().getIntegerType(isNarrow ? 32 : 64));
    SmallVector<Value> starts(type.getRank(), emit.splat(index, 0));
    SmallVector<int64_t> shape(type.getShape());
    for (auto [dim, factor] : windowed) {
      shape[dim] =
          cast<RankedTensorType>(op.getOperand().getType()).getDimSize(dim);
      blocks.add(dim, factor, emit.splat(index, op.getEdgePaddingLow()[dim]),
                 shape[dim]);
    }
    // Other dimensions are padded as they were.
    local.getResult().setType(type.clone(shape));
    Value block = emit.broadcast(local.getPaddingValue(), type, 0);
    return {blocks.update(block, local.getResult(), starts)};
  }

  static SmallVector<SplitDim>
  getSplitDims(PadOp pad, const ShardingRule &rule,
               function_ref<int64_t(unsigned)> getShards) {
    SmallVector<SplitDim> found;
    for (auto [index, factors] : llvm::enumerate(rule.operands[0])) {
      auto dim = static_cast<int64_t>(index);
      std::optional<Window> moved = getMovedWindow(pad, dim);
      if (moved && !factors.empty() && getShards(factors.front()) > 1) {
        SplitWindow window = *SplitWindow::find(*moved, /*isSum=*/false);
        found.push_back(
            {dim, window, {dim, factors.front(), window.getHalo()}});
      }
    }
    return found;
  }
};

} // namespace

void stablehlo::attachDataMovementRules(MLIRContext &context) {
  BroadcastInDimOp::attachInterface<BroadcastInDimRule>(context);
  ReshapeOp::attachInterface<ReshapeRule>(context);
  TransposeOp::attachInterface<TransposeRule>(context);
  PadOp::attachInterface<PadRule>(context);
}
