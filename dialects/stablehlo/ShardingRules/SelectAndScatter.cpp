//===- SelectAndScatter.cpp - Rule of select_and_scatter ------------------===//
//
// The gradient of maximum pooling. A device fetches the sources of all windows
// that reach into its block, and the rows under those windows; it scatters to
// these rows, and keeps its block. Each window is the whole window, so that of
// equal elements the same is selected.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/SelectAndScatter.h"
#include "dialects/alpa/Alpa.h"
#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/Halo.h"
#include "dialects/stablehlo/ShardingRules/LocalEmitter.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "dialects/stablehlo/ShardingRules/ShardingRules.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <limits>

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::Exchange;
using alpa::FactorKind;
using alpa::LocalContext;
using alpa::OperatorRole;
using alpa::ReductionKind;
using alpa::ShardingRule;

std::optional<double> stablehlo::getLeastSelected(SelectAndScatterOp op) {
  Block &body = op.getSelect().front();
  auto type = dyn_cast<FloatType>(
      cast<RankedTensorType>(op.getOperand().getType()).getElementType());
  auto compare = dyn_cast<CompareOp>(body.front());
  if (!type || !llvm::APFloat::semanticsHasInf(type.getFloatSemantics()) ||
      body.getOperations().size() != 2 || !compare ||
      compare.getLhs() != body.getArgument(0) ||
      compare.getRhs() != body.getArgument(1) ||
      body.back().getOperand(0) != compare->getResult(0)) {
    return std::nullopt;
  }
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (compare.getComparisonDirection()) {
  case ComparisonDirection::GE:
    return -infinity;
  case ComparisonDirection::LE:
    return infinity;
  default:
    return std::nullopt;
  }
}

bool stablehlo::hasExplicitPadding(SelectAndScatterOp op) {
  return op->hasAttr(alpa::kExplicitPaddingAttrName) &&
         getLeastSelected(op).has_value();
}

namespace {

Value createScalar(OpBuilder &builder, Location loc, Type element,
                   double value) {
  auto type = RankedTensorType::get({}, element);
  return ConstantOp::create(
             builder, loc, type,
             DenseElementsAttr::get(type, builder.getFloatAttr(element, value)))
      .getResult();
}

int64_t getDimSize(Value value, int64_t dim) {
  return cast<RankedTensorType>(value.getType()).getDimSize(dim);
}

/// The operator on an operand with all rows that it needs, and nothing but the
/// rows from `starts` on that are its result.
Value createCut(OpBuilder &builder, SelectAndScatterOp op, Value operand,
                Value source, Value init, ArrayRef<int64_t> starts,
                RankedTensorType resultType) {
  auto made = cast<SelectAndScatterOp>(builder.clone(*op));
  made->setOperands({operand, source, init});
  made->getResult(0).setType(operand.getType());
  made.removePaddingAttr();
  made->removeDiscardableAttr(alpa::kExplicitPaddingAttrName);
  if (operand.getType() == resultType) {
    return made->getResult(0);
  }
  SmallVector<int64_t> limits, strides(starts.size(), 1);
  for (auto [start, size] : llvm::zip(starts, resultType.getShape())) {
    limits.push_back(start + size);
  }
  return SliceOp::create(builder, op.getLoc(), resultType, made->getResult(0),
                         builder.getDenseI64ArrayAttr(starts),
                         builder.getDenseI64ArrayAttr(limits),
                         builder.getDenseI64ArrayAttr(strides))
      .getResult();
}

/// Padding is written out where nothing else says what it holds.
Value createPadded(OpBuilder &builder, SelectAndScatterOp op, Value operand,
                   ArrayRef<int64_t> low, ArrayRef<int64_t> high) {
  auto isNone = [](int64_t size) { return size == 0; };
  if (llvm::all_of(low, isNone) && llvm::all_of(high, isNone)) {
    return operand;
  }
  auto type = cast<RankedTensorType>(operand.getType());
  SmallVector<int64_t> shape(type.getShape()), interior(low.size(), 0);
  for (auto [size, before, after] : llvm::zip(shape, low, high)) {
    size += before + after;
  }
  Value least = createScalar(builder, op.getLoc(), type.getElementType(),
                             *getLeastSelected(op));
  return PadOp::create(builder, op.getLoc(), type.clone(shape), operand, least,
                       builder.getDenseI64ArrayAttr(low),
                       builder.getDenseI64ArrayAttr(high),
                       builder.getDenseI64ArrayAttr(interior))
      .getResult();
}

/// How windows lie over one dimension.
///
/// Rows of a block [0, rows) are in windows w with
///   w * stride - low <= rows - 1  and  w * stride - low + size - 1 >= 0,
/// where a block has windows [0, rows / stride). These need operand rows from
/// the first of the first to the last of the last window.
struct Windows {
  Windows(SelectAndScatterOp op, int64_t dim)
      : stride(getSizeAt(op.getWindowStrides(), dim)),
        low(getPadding(op.getPadding(), dim).value_or(Padding(-1, -1)).first),
        count(getDimSize(op.getSource(), dim)) {
    int64_t size = getSizeAt(op.getWindowDimensions(), dim);
    sources.first =
        std::max<int64_t>(0, llvm::divideFloorSigned(size - 1 - low, stride));
    sources.second =
        std::max<int64_t>(0, llvm::divideFloorSigned(low - 1, stride) + 1);
    rows.first = sources.first * stride + low;
    rows.second =
        std::max<int64_t>(0, size - low - stride + sources.second * stride);
    isAligned = low >= 0 && getDimSize(op.getOperand(), dim) == count * stride;
  }

  bool hasHalo() const {
    return rows != Padding(0, 0) || sources != Padding(0, 0);
  }

  int64_t stride, low, count;
  /// Sources and operand rows of other blocks that a block needs.
  Padding sources, rows;
  /// Blocks of the operand lie under blocks of the sources.
  bool isAligned;
};

/// A dimension that is split, of operand and source alike.
struct SplitRows {
  HaloDim operand, source;
};

struct SelectAndScatterRule
    : RuleModel<SelectAndScatterRule, SelectAndScatterOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto scatter = cast<SelectAndScatterOp>(op);
    RuleBuilder builder(op);
    for (int64_t dim = 0; builder.isUsable() && dim < builder.getResultRank(0);
         ++dim) {
      addDim(builder, scatter, dim);
    }
    ShardingRule &rule = builder.getRule();
    rule.flops = getNumElements(op->getResult(0));
    // Where the source goes depends on the operand, what arrives is linear.
    if (isSummable(op->getResult(0).getType()) && addsUp(scatter) &&
        keepsShares(op->getOperand(1).getType(), op->getResult(0).getType()) &&
        isKnownZero(op->getOperand(2))) {
      rule.addLinear(1);
    }
    return builder.finish();
  }
  OperatorRole getOperatorRole(Operation *op) const {
    return getRoleOf(getShardingRule(op));
  }

  SmallVector<Exchange> getExchanges(Operation *op, const ShardingRule &rule,
                                     unsigned factor,
                                     ArrayRef<int64_t> factorShards) const {
    auto split =
        getSplitRows(cast<SelectAndScatterOp>(op), rule,
                     [&](unsigned each) { return factorShards[each]; });
    SmallVector<Exchange> exchanges =
        getHaloExchanges(rule, 0, op->getOperand(0).getType(),
                         getOperands(split), factor, factorShards);
    llvm::append_range(
        exchanges, getHaloExchanges(rule, 1, op->getOperand(1).getType(),
                                    getSources(split), factor, factorShards));
    return exchanges;
  }

  /// before: y = select_and_scatter(x, s)
  /// after:  x, s = with the rows and sources of the blocks beside
  ///         y = slice(select_and_scatter(x, s)) to the rows of the block
  FailureOr<SmallVector<Value>> localize(Operation *op,
                                         LocalContext &context) const {
    auto scatter = cast<SelectAndScatterOp>(op);
    bool isPadded = hasExplicitPadding(scatter);
    auto split = getSplitRows(scatter, context.getRule(), [&](unsigned factor) {
      return context.getNumShards(factor);
    });
    bool hasHalo = llvm::any_of(split, [](const SplitRows &dim) {
      return dim.operand.halo != Padding(0, 0) ||
             dim.source.halo != Padding(0, 0);
    });
    if (!isPadded && !hasHalo) {
      return alpa::cloneLocal(op, context);
    }
    OpBuilder &builder = context.getBuilder();
    auto type = cast<RankedTensorType>(context.getResultTypes()[0]);
    Value least = createScalar(builder, op->getLoc(), type.getElementType(),
                               *getLeastSelected(scatter));
    Value operand = fetchHalo(context, context.getOperands()[0],
                              getOperands(split), least, op->getLoc());
    Value source = fetchHalo(context, context.getOperands()[1],
                             getSources(split), /*filling=*/{}, op->getLoc());
    SmallVector<int64_t> starts, low, high;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      Padding padding = *getPadding(scatter.getPadding(), dim);
      low.push_back(padding.first);
      high.push_back(padding.second);
      starts.push_back(padding.first);
    }
    for (const SplitRows &each : split) {
      low[each.operand.dim] = high[each.operand.dim] = 0;
      starts[each.operand.dim] = each.operand.halo.first;
    }
    operand = createPadded(builder, scatter, operand, low, high);
    return SmallVector<Value>{createCut(builder, scatter, operand, source,
                                        context.getOperands()[2], starts,
                                        type)};
  }

private:
  static bool addsUp(SelectAndScatterOp op) {
    return getReductionKind(op.getScatter()) == ReductionKind::Sum;
  }

  /// Padding of which nothing is known is where the operator says it is.
  static bool canSplit(SelectAndScatterOp op, int64_t dim,
                       const Windows &windows) {
    bool isPadded = getPadding(op.getPadding(), dim) != Padding(0, 0);
    return windows.isAligned && (!isPadded || hasExplicitPadding(op)) &&
           (!windows.hasHalo() || (getLeastSelected(op) && addsUp(op)));
  }

  static void addDim(RuleBuilder &builder, SelectAndScatterOp op, int64_t dim) {
    Windows windows(op, dim);
    if (!canSplit(op, dim, windows)) {
      return;
    }
    DimFactors blocks =
        builder.addFactor(windows.count, FactorKind::Parallel,
                          ReductionKind::Sum, windows.hasHalo());
    DimFactors rows = blocks;
    llvm::append_range(rows, builder.addReplicated(windows.stride));
    builder.appendOperand(0, dim, rows);
    builder.appendOperand(1, dim, blocks);
    builder.appendResult(0, dim, rows);
  }

  static SmallVector<SplitRows>
  getSplitRows(SelectAndScatterOp op, const ShardingRule &rule,
               function_ref<int64_t(unsigned)> getShards) {
    SmallVector<SplitRows> found;
    for (auto [index, factors] : llvm::enumerate(rule.operands[1])) {
      if (factors.empty() || getShards(factors.front()) == 1) {
        continue;
      }
      auto dim = static_cast<int64_t>(index);
      Windows windows(op, dim);
      found.push_back({{dim, factors.front(), windows.rows},
                       {dim, factors.front(), windows.sources}});
    }
    return found;
  }

  static SmallVector<HaloDim> getOperands(ArrayRef<SplitRows> split) {
    return llvm::map_to_vector(
        split, [](const SplitRows &each) { return each.operand; });
  }
  static SmallVector<HaloDim> getSources(ArrayRef<SplitRows> split) {
    return llvm::map_to_vector(
        split, [](const SplitRows &each) { return each.source; });
  }
};

} // namespace

Value stablehlo::writePaddingOut(OpBuilder &builder, SelectAndScatterOp op) {
  SmallVector<int64_t> low, high;
  auto type = cast<RankedTensorType>(op.getOperand().getType());
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    Padding padding = *getPadding(op.getPadding(), dim);
    low.push_back(padding.first);
    high.push_back(padding.second);
  }
  Value operand = createPadded(builder, op, op.getOperand(), low, high);
  return createCut(builder, op, operand, op.getSource(), op.getInitValue(), low,
                   type);
}

void stablehlo::attachSelectAndScatterRules(MLIRContext &context) {
  SelectAndScatterOp::attachInterface<SelectAndScatterRule>(context);
}
