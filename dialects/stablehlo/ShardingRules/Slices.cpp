//===- Slices.cpp - Rules of slices and updates of slices -----------------===//
//
// Dimensions that are taken whole are parallel, and so are the groups of one of
// which the same element of each is taken. Of a part of a dimension that can be
// split as often, devices send each other what comes to lie in other blocks
// (see BlockMoves.h). A small part of a dimension is a sum in which every
// device contributes what it has of it; devices write what they have of an
// update. All other dimensions are replicated.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/BlockMoves.h"
#include "dialects/stablehlo/ShardingRules/BlockWindows.h"
#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/LocalEmitter.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "dialects/stablehlo/ShardingRules/ShardingRules.h"
#include "mlir/IR/Matchers.h"
#include "stablehlo/dialect/StablehloOps.h"

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::Exchange;
using alpa::FactorKind;
using alpa::LocalContext;
using alpa::OperatorRole;
using alpa::ShardingRule;

namespace {

ArrayRef<int64_t> getShape(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// The given sizes, with those that were the whole dimension replaced by the
/// size of the dimension on one device.
SmallVector<int64_t> getLocalSizes(ArrayRef<int64_t> sizes, Value global,
                                   Value local) {
  SmallVector<int64_t> result(sizes);
  ArrayRef<int64_t> globalShape = getShape(global);
  ArrayRef<int64_t> localShape = getShape(local);
  for (size_t dim = 0; dim < std::min(result.size(), globalShape.size());
       ++dim) {
    if (result[dim] == globalShape[dim]) {
      result[dim] = localShape[dim];
    }
  }
  return result;
}

/// Whether a slice takes one element of every `stride` of a dimension:
/// `x[1::2]`.
bool takesOneOfEach(SliceOp slice, int64_t dim) {
  int64_t stride = slice.getStrides()[dim];
  return stride > 1 && slice.getStartIndices()[dim] < stride &&
         getShape(slice.getOperand())[dim] ==
             getShape(slice.getResult())[dim] * stride;
}

/// Whether to add up what devices have of a slice: an all-reduce moves the
/// slice twice, an all-gather all that it is a slice of.
bool isSmallPart(Operation *op, int64_t dim) {
  int64_t taken = getShape(op->getResult(0))[dim];
  return isSummable(op->getResult(0).getType()) &&
         2 * taken < getShape(op->getOperand(0))[dim];
}

/// Whether an index follows from the values of a loop alone, as `n - 1 - i`
/// does from its counter, by a few operators at most.
bool isOfLoop(Value index, unsigned mostOperators = 4) {
  if (auto argument = dyn_cast<BlockArgument>(index)) {
    return isa<WhileOp>(argument.getOwner()->getParentOp());
  }
  Operation *op = index.getDefiningOp();
  if (mostOperators == 0 ||
      !isa<AddOp, SubtractOp, MulOp, SelectOp, ConvertOp>(op)) {
    return false;
  }
  bool isFound = false;
  for (Value operand : op->getOperands()) {
    if (matchPattern(operand, m_Constant()) ||
        isa_and_nonnull<CompareOp>(operand.getDefiningOp())) {
      continue;
    }
    if (!isOfLoop(operand, mostOperators - 1)) {
      return false;
    }
    isFound = true;
  }
  return isFound;
}

/// Dimensions of an operand that are split, but not as a dimension of the other
/// value is, the slice or the update.
SmallVector<std::pair<int64_t, unsigned>>
getWindowed(const alpa::TensorFactors &whole, const alpa::TensorFactors &part,
            LocalContext &context) {
  SmallVector<std::pair<int64_t, unsigned>> found;
  for (auto [dim, lists] : llvm::enumerate(llvm::zip(whole, part))) {
    auto &[factors, taken] = lists;
    if (factors.size() == 1 && factors != taken &&
        context.getNumShards(factors.front()) > 1) {
      found.emplace_back(dim, factors.front());
    }
  }
  return found;
}

/// Start indices as scalars of one signed type; 0 for dimensions that are taken
/// whole, whatever their index says: XLA adds it to where a block starts, and
/// moves the sum inside, not the index.
SmallVector<Value> getSignedStarts(ValueRange starts, Value whole, Value part,
                                   LocalEmitter &emit) {
  ArrayRef<int64_t> shape = getShape(whole);
  int64_t most = *std::max_element(shape.begin(), shape.end());
  SmallVector<Value> result;
  for (auto [dim, start] : llvm::enumerate(starts)) {
    Value index = emit.toSignedIndices(start, most);
    result.push_back(
        shape[dim] == getShape(part)[dim]
            ? emit.splat(cast<RankedTensorType>(index.getType()), 0)
            : index);
  }
  return result;
}

struct SliceRule : RuleModel<SliceRule, SliceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto slice = cast<SliceOp>(op);
    RuleBuilder builder(op);
    int64_t rank = builder.getResultRank(0);
    auto hasRank = [&](ArrayRef<int64_t> values) {
      return static_cast<int64_t>(values.size()) == rank;
    };
    if (!hasRank(slice.getStartIndices()) ||
        !hasRank(slice.getLimitIndices()) || !hasRank(slice.getStrides())) {
      builder.invalidate();
      rank = 0;
    }
    for (int64_t dim = 0; dim < rank; ++dim) {
      // The start is 0 and the stride 1 when nothing is left out.
      if (builder.getOperandSize(0, dim) == builder.getResultSize(0, dim)) {
        builder.share(0, dim, 0, dim);
      } else if (takesOneOfEach(slice, dim)) {
        DimFactors groups = builder.addParallel(builder.getResultSize(0, dim));
        builder.appendOperand(0, dim, groups);
        builder.appendResult(0, dim, groups);
        builder.appendOperand(0, dim,
                              builder.addReplicated(slice.getStrides()[dim]));
      } else if (slice.getStrides()[dim] == 1 &&
                 addMovedBlocks(builder, {0}, dim)) {
        continue;
      } else if (isSmallPart(op, dim) && (slice.getStrides()[dim] == 1 ||
                                          builder.getResultSize(0, dim) == 1)) {
        builder.appendOperand(0, dim,
                              builder.addFactor(builder.getOperandSize(0, dim),
                                                FactorKind::Reduction));
      }
    }
    if (isSummable(slice.getResult().getType())) {
      builder.getRule().addLinear(0);
    }
    return builder.finish();
  }
  OperatorRole getOperatorRole(Operation *op) const {
    return getRoleOf(getShardingRule(op));
  }
  FailureOr<SmallVector<Value>> localize(Operation *op,
                                         LocalContext &context) const {
    SmallVector<Value> results = alpa::cloneLocal(op, context);
    auto global = cast<SliceOp>(op);
    auto slice = cast<SliceOp>(results.front().getDefiningOp());
    Value operand = context.getOperands().front();
    SmallVector<int64_t> limits =
        getLocalSizes(global.getLimitIndices(), op->getOperand(0), operand);
    for (auto [dim, limit] : llvm::enumerate(limits)) {
      if (takesOneOfEach(global, dim)) {
        limit = getShape(operand)[dim];
      }
    }
    slice.setLimitIndices(limits);
    const ShardingRule &rule = context.getRule();
    SmallVector<SplitMove> moved = getMoved(global, rule, [&](unsigned each) {
      return context.getNumShards(each);
    });
    if (!moved.empty()) {
      return SmallVector<Value>{move(slice, moved, context)};
    }
    SmallVector<std::pair<int64_t, unsigned>> windowed =
        getWindowed(rule.operands[0], rule.results[0], context);
    return windowed.empty() ? results : sliceBlocks(slice, windowed, context);
  }

  SmallVector<Exchange> getExchanges(Operation *op, const ShardingRule &rule,
                                     unsigned factor,
                                     ArrayRef<int64_t> factorShards) const {
    // Other dimensions are sliced before, but those that are sent later.
    double bytes = getBlockBytes(op->getResult(0).getType(), rule.results[0],
                                 factorShards);
    SmallVector<SplitMove> moves =
        getMoved(cast<SliceOp>(op), rule,
                 [&](unsigned each) { return factorShards[each]; });
    SmallVector<Exchange> exchanges;
    for (const auto &[dim, own] : llvm::reverse(moves)) {
      double numRows = static_cast<double>(dim.targetSize) /
                       static_cast<double>(factorShards[own]);
      if (own == factor) {
        exchanges = getMoveExchanges(dim, factorShards[own], bytes / numRows);
      }
      bytes *= static_cast<double>(dim.sourceSize) /
               static_cast<double>(dim.targetSize);
    }
    return exchanges;
  }

private:
  static SmallVector<SplitMove>
  getMoved(SliceOp slice, const ShardingRule &rule,
           function_ref<int64_t(unsigned)> getShards) {
    return findSplitMoves(rule, getShards, [&](int64_t dim) {
      int64_t size = getShape(slice.getResult())[dim];
      MovedRun run = {slice.getStartIndices()[dim], 0, size};
      return MovedDim{dim, getShape(slice.getOperand())[dim], size, run};
    });
  }

  /// before: y = slice(x) [4:8]
  /// after:  the other dimensions of x are sliced, and devices send each other
  ///         what they have of this one
  static Value move(SliceOp slice, ArrayRef<SplitMove> moved,
                    LocalContext &context) {
    OpBuilder::InsertionGuard guard(context.getBuilder());
    context.getBuilder().setInsertionPointAfter(slice);
    LocalEmitter emit(context, slice.getLoc());
    auto local = cast<RankedTensorType>(slice.getType());
    SmallVector<int64_t> firsts(slice.getStartIndices()),
        limits(slice.getLimitIndices()), shape(local.getShape());
    for (const auto &[dim, factor] : moved) {
      firsts[dim.dim] = 0;
      limits[dim.dim] = shape[dim.dim] = getShape(slice.getOperand())[dim.dim];
    }
    Value value =
        SliceOp::create(context.getBuilder(), slice.getLoc(),
                        local.clone(shape), slice.getOperand(), firsts, limits,
                        SmallVector<int64_t>(slice.getStrides()))
            .getResult();
    for (const auto &[dim, factor] : moved) {
      shape[dim.dim] = local.getDimSize(dim.dim);
      value = moveBlocks(context, value, emit.splat(local.clone(shape), 0), dim,
                         factor, slice.getLoc());
    }
    slice->erase();
    return value;
  }

  /// before: y = slice(x) [2:3]
  /// after:  s = clamp(2 - first row, 0, rows - 1)
  ///         y = select(s + first row == 2, dynamic_slice(block) s, 0)
  static SmallVector<Value>
  sliceBlocks(SliceOp slice, ArrayRef<std::pair<int64_t, unsigned>> windowed,
              LocalContext &context) {
    OpBuilder::InsertionGuard guard(context.getBuilder());
    context.getBuilder().setInsertionPointAfter(slice);
    LocalEmitter emit(context, slice.getLoc());
    BlockWindowEmitter blocks(context, emit, slice.getLoc());
    SmallVector<int64_t> firsts(slice.getStartIndices()),
        limits(slice.getLimitIndices()), strides(slice.getStrides()),
        sizes(getShape(slice.getResult()));
    bool isNarrow = llvm::all_of(windowed, [&](auto split) {
      return context.getIndexType(split.second).getIntOrFloatBitWidth() <= 32;
    });
    auto index = RankedTensorType::get(
        {}, context.getBuilder().getIntegerType(isNarrow ? 32 : 64));
    SmallVector<Value> starts(sizes.size(), emit.splat(index, 0));
    for (auto [dim, factor] : windowed) {
      blocks.add(dim, factor, emit.splat(index, firsts[dim]), sizes[dim]);
      firsts[dim] = 0;
      limits[dim] = getShape(slice.getOperand())[dim];
      strides[dim] = 1;
    }
    // Other dimensions are sliced as they were.
    auto local = cast<RankedTensorType>(slice.getResult().getType());
    SmallVector<int64_t> shape(sizes);
    for (auto [dim, factor] : windowed) {
      shape[dim] = limits[dim];
    }
    Value rest = SliceOp::create(context.getBuilder(), slice.getLoc(),
                                 local.clone(shape), slice.getOperand(), firsts,
                                 limits, strides)
                     .getResult();
    Value result = blocks.slice(rest, starts, sizes);
    slice->erase();
    return {result};
  }
};

/// A loop that takes elements along its own counter would send in every
/// iteration what it is cheaper to gather once: such dimensions stay whole.
struct DynamicSliceRule : RuleModel<DynamicSliceRule, DynamicSliceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    OperandRange starts = cast<DynamicSliceOp>(op).getStartIndices();
    int64_t rank = std::min<int64_t>(builder.getResultRank(0), starts.size());
    for (int64_t dim = 0; dim < rank; ++dim) {
      if (builder.getOperandSize(0, dim) == builder.getResultSize(0, dim)) {
        builder.share(0, dim, 0, dim);
      } else if (isSmallPart(op, dim) && !isOfLoop(starts[dim])) {
        builder.appendOperand(0, dim,
                              builder.addFactor(builder.getOperandSize(0, dim),
                                                FactorKind::Reduction));
      }
    }
    builder.getRule().untouchedOperands.push_back(0);
    if (isSummable(op->getResult(0).getType())) {
      builder.getRule().addLinear(0);
    }
    return builder.finish();
  }
  /// A dimension that is taken whole starts at 0, whatever its start index is.
  /// On devices that says so: XLA adds the index to where a block starts, and
  /// moves the sum inside, not the index.
  FailureOr<SmallVector<Value>> localize(Operation *op,
                                         LocalContext &context) const {
    SmallVector<Value> results = alpa::cloneLocal(op, context);
    auto slice = cast<DynamicSliceOp>(results.front().getDefiningOp());
    slice.setSliceSizes(getLocalSizes(cast<DynamicSliceOp>(op).getSliceSizes(),
                                      op->getOperand(0),
                                      context.getOperands().front()));
    LocalEmitter emit(context, op->getLoc());
    OpBuilder::InsertionGuard guard(context.getBuilder());
    context.getBuilder().setInsertionPoint(slice);
    const ShardingRule &rule = context.getRule();
    SmallVector<std::pair<int64_t, unsigned>> windowed =
        getWindowed(rule.operands[0], rule.results[0], context);
    if (!windowed.empty()) {
      SmallVector<Value> starts = getSignedStarts(
          slice.getStartIndices(), op->getOperand(0), op->getResult(0), emit);
      BlockWindowEmitter blocks(context, emit, op->getLoc());
      for (auto [dim, factor] : windowed) {
        blocks.add(dim, factor, starts[dim], slice.getSliceSizes()[dim]);
      }
      Value result =
          blocks.slice(slice.getOperand(), starts, getShape(slice.getResult()));
      slice->erase();
      return SmallVector<Value>{result};
    }
    for (auto [dim, start] : llvm::enumerate(slice.getStartIndicesMutable())) {
      if (getShape(op->getOperand(0))[dim] == getShape(op->getResult(0))[dim] &&
          !matchPattern(start.get(), m_Zero())) {
        auto type = cast<RankedTensorType>(start.get().getType());
        start.set(emit.splat(type, 0));
      }
    }
    return results;
  }
};

struct DynamicUpdateSliceRule
    : RuleModel<DynamicUpdateSliceRule, DynamicUpdateSliceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    for (int64_t dim = 0; dim < builder.getResultRank(0); ++dim) {
      int64_t size = builder.getResultSize(0, dim);
      bool isWhole = builder.getOperandSize(1, dim) == size;
      DimFactors factors = builder.addParallel(size);
      builder.appendOperand(0, dim, factors);
      builder.appendResult(0, dim, factors);
      if (isWhole) {
        builder.appendOperand(1, dim, factors);
      }
    }
    ShardingRule &rule = builder.getRule();
    rule.untouchedOperands.push_back(0);
    rule.untouchedResults.push_back(0);
    if (isSummable(op->getResult(0).getType())) {
      rule.addLinear({0, 1});
      if (op->getNumOperands() > 1 && isKnownZero(op->getOperand(0))) {
        rule.addLinear(1);
      }
      if (op->getNumOperands() > 1 && isKnownZero(op->getOperand(1))) {
        rule.addLinear(0);
      }
    }
    return builder.finish();
  }
  /// before: y = dynamic_update_slice(x, u, i), u of one row
  /// after:  s = clamp(i - first row, 0, rows - 1)
  ///         u = select(s + first row == i, u, dynamic_slice(block) s)
  ///         y = dynamic_update_slice(block, u, s)
  FailureOr<SmallVector<Value>> localize(Operation *op,
                                         LocalContext &context) const {
    const ShardingRule &rule = context.getRule();
    SmallVector<std::pair<int64_t, unsigned>> windowed =
        getWindowed(rule.operands[0], rule.operands[1], context);
    if (windowed.empty()) {
      return alpa::cloneLocal(op, context);
    }
    LocalEmitter emit(context, op->getLoc());
    BlockWindowEmitter blocks(context, emit, op->getLoc());
    ValueRange operands = context.getOperands();
    SmallVector<Value> starts = getSignedStarts(
        operands.drop_front(2), op->getOperand(0), op->getOperand(1), emit);
    for (auto [dim, factor] : windowed) {
      blocks.add(dim, factor, starts[dim], getShape(op->getOperand(1))[dim]);
    }
    return SmallVector<Value>{blocks.update(operands[0], operands[1], starts)};
  }
};

} // namespace

void stablehlo::attachSliceRules(MLIRContext &context) {
  SliceOp::attachInterface<SliceRule>(context);
  DynamicSliceOp::attachInterface<DynamicSliceRule>(context);
  DynamicUpdateSliceOp::attachInterface<DynamicUpdateSliceRule>(context);
}
