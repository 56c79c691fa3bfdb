//===- Windows.cpp - Rule of reduce_window --------------------------------===//
//
// reduce_window (pooling, cumulative sums): a dimension along which a window
// takes all elements up to each, or from each, is ordered; along others devices
// fetch the rows that windows reach beyond their blocks.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/Halo.h"
#include "dialects/stablehlo/ShardingRules/KnownValues.h"
#include "dialects/stablehlo/ShardingRules/LocalEmitter.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "dialects/stablehlo/ShardingRules/ShardingRules.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/IRMapping.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::Exchange;
using alpa::FactorKind;
using alpa::LocalContext;
using alpa::OperatorRole;
using alpa::ReductionKind;
using alpa::ShardingRule;

namespace {

/// Whether an optional per-dimension attribute has its default of 1 at `dim`.
bool isOne(OptionalSizes values, int64_t dim) {
  return getSizeAt(values, dim) == 1;
}

/// XLA makes a tree of a cumulative window, with windows of so many elements
/// (`ReduceWindowRewriter`, `xla_reduce_window_rewrite_base_length`).
constexpr int64_t kTreeWindow = 16;

/// Whether a window slides element by element over a dimension.
bool isDense(ReduceWindowOp window, int64_t dim) {
  return isOne(window.getWindowStrides(), dim) &&
         isOne(window.getBaseDilations(), dim) &&
         isOne(window.getWindowDilations(), dim);
}

/// Whether it has all elements up to each (`isReverse`: from each) of a
/// dimension.
bool isCumulative(ReduceWindowOp window, int64_t dim, bool isReverse) {
  ArrayRef<int64_t> sizes = window.getWindowDimensions();
  auto type = cast<RankedTensorType>(window.getInputs().front().getType());
  if (dim >= static_cast<int64_t>(sizes.size()) || dim >= type.getRank() ||
      sizes[dim] != type.getDimSize(dim)) {
    return false;
  }
  int64_t others = sizes[dim] - 1;
  return others > 0 && isDense(window, dim) &&
         getPadding(window.getPadding(), dim) ==
             (isReverse ? Padding(0, others) : Padding(others, 0));
}

/// Whether blocks of a cumulative window can be combined: initial values stand
/// for what is not there, and are combined once for each block.
bool combinesBlocks(ReduceWindowOp window) {
  std::optional<ReductionKind> kind = getReductionKind(window.getBody());
  if (kind == ReductionKind::Sum) {
    return isKnownZero(window.getInitValues().front());
  }
  return kind != ReductionKind::Product ||
         getKnownSplat(window.getInitValues().front()) == 1.0;
}

/// Writes what a cumulative window along one split dimension combines.
class BlockScan {
public:
  /// \param isReverse windows run from each element to the last.
  BlockScan(ReduceWindowOp local, int64_t dim, bool isReverse, unsigned factor,
            LocalContext &context)
      : local(local), dim(dim), isReverse(isReverse), factor(factor),
        context(context), builder(context.getBuilder()),
        emit(context, local.getLoc()) {}

  /// before: y = scan(block)
  /// after:  y = scan(block); t = all_gather(last of y)
  ///         y = reduce(t of the blocks in front) * y   where * is the body
  void run(SmallVectorImpl<Value> &results) {
    SmallVector<Value> before = reduce(
        llvm::map_to_vector(llvm::enumerate(results),
                            [&](auto entry) {
                              return getTotals(entry.value(), entry.index());
                            }),
        dim);
    for (auto [value, result] : llvm::zip(before, results)) {
      auto type = cast<RankedTensorType>(result.getType());
      auto dims = llvm::to_vector(
          llvm::make_filter_range(llvm::seq(type.getRank()),
                                  [&](int64_t other) { return other != dim; }));
      value = BroadcastInDimOp::create(builder, local.getLoc(), type, value,
                                       builder.getDenseI64ArrayAttr(dims))
                  .getResult();
    }
    apply(before, results);
  }

private:
  /// The totals of the blocks in front of that of the device, initial values in
  /// the place of the others.
  Value getTotals(Value result, unsigned index) {
    auto type = cast<RankedTensorType>(result.getType());
    int64_t size = type.getDimSize(dim), count = context.getNumShards(factor);
    int64_t last = isReverse ? 0 : size - 1;
    Value totals =
        context.gather(emit.slice(result, dim, last, last + 1), dim, factor);
    auto totalsType = cast<RankedTensorType>(totals.getType());
    Type number = context.getIndexType(factor);
    SmallVector<int64_t> starts;
    for (int64_t block = 0; block < count; ++block) {
      starts.push_back(block * size);
    }
    RankedTensorType numbers = totalsType.clone(number);
    Value isBefore = emit.compare(
        emit.broadcast(emit.vector(starts, number), numbers, dim),
        emit.broadcast(context.getOffset(factor, number), numbers, dim),
        isReverse ? ComparisonDirection::GT : ComparisonDirection::LT);
    return emit.select(
        isBefore, totals,
        emit.broadcast(local.getInitValues()[index], totalsType, dim));
  }

  SmallVector<Value> reduce(ArrayRef<Value> values, int64_t along) {
    SmallVector<Type> types = llvm::map_to_vector(values, [&](Value value) {
      auto type = cast<RankedTensorType>(value.getType());
      SmallVector<int64_t> shape(type.getShape());
      shape.erase(shape.begin() + along);
      return Type(type.clone(shape));
    });
    auto made = ReduceOp::create(builder, local.getLoc(), types, values,
                                 local.getInitValues(),
                                 builder.getDenseI64ArrayAttr({along}));
    IRMapping mapping;
    local.getBody().cloneInto(&made.getBody(), mapping);
    return llvm::to_vector_of<Value>(made->getResults());
  }

  /// Combines whole tensors: by the operation that the body is, or else by
  /// reducing pairs.
  void apply(ArrayRef<Value> before, SmallVectorImpl<Value> &results) {
    if (getReductionKind(local.getBody())) {
      Operation *combine = builder.clone(local.getBody().front().front());
      combine->setOperands({before.front(), results.front()});
      combine->getResult(0).setType(results.front().getType());
      results.front() = combine->getResult(0);
      return;
    }
    SmallVector<Value> pairs;
    for (auto [first, second] : llvm::zip(before, results)) {
      auto type = cast<RankedTensorType>(second.getType());
      SmallVector<int64_t> shape(type.getShape());
      shape.insert(shape.begin(), 1);
      SmallVector<Value> parts = {emit.reshape(first, shape),
                                  emit.reshape(second, shape)};
      shape.front() = 2;
      pairs.push_back(ConcatenateOp::create(builder, local.getLoc(),
                                            type.clone(shape), parts,
                                            builder.getI64IntegerAttr(0))
                          .getResult());
    }
    results.assign(reduce(pairs, 0));
  }

  ReduceWindowOp local;
  int64_t dim;
  bool isReverse;
  unsigned factor;
  LocalContext &context;
  OpBuilder &builder;
  LocalEmitter emit;
};

struct ReduceWindowRule : RuleModel<ReduceWindowRule, ReduceWindowOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto window = cast<ReduceWindowOp>(op);
    unsigned numInputs = window.getInputs().size();
    RuleBuilder builder(op);
    bool isElementwise = combinesElements(window.getInitValues());
    double windowSize = 1;
    for (int64_t dim = 0; dim < builder.getResultRank(0); ++dim) {
      bool isScan = isElementwise && isAnyCumulative(window, dim);
      windowSize *= static_cast<double>(getWindowSize(window, dim, isScan));
      if (!isElementwise || !builder.isUsable()) {
        continue;
      }
      WindowFactors factors = getFactors(builder, window, dim, isScan);
      for (unsigned i = 0; i < numInputs; ++i) {
        builder.appendOperand(i, dim, factors.input);
        builder.appendResult(i, dim, factors.outputs);
      }
    }
    ShardingRule &rule = builder.getRule();
    rule.flops = windowSize * getNumElements(op->getResult(0)) * numInputs;
    if (numInputs == 1 && isSummable(op->getResult(0).getType()) &&
        getReductionKind(window.getBody()) == ReductionKind::Sum &&
        keepsShares(op->getOperand(0).getType(), op->getResult(0).getType()) &&
        isKnownZero(op->getOperand(1))) {
      rule.addLinear(0);
    }
    return builder.finish();
  }
  OperatorRole getOperatorRole(Operation *op) const {
    return getRoleOf(getShardingRule(op));
  }

  SmallVector<Exchange> getExchanges(Operation *op, const ShardingRule &rule,
                                     unsigned factor,
                                     ArrayRef<int64_t> factorShards) const {
    if (rule.factors[factor].isOrdered()) {
      return getIterationExchanges(op, rule, factor, factorShards);
    }
    auto window = cast<ReduceWindowOp>(op);
    SmallVector<HaloDim> dims = getInputs(getSplitDims(
        window, rule, [&](unsigned each) { return factorShards[each]; }));
    SmallVector<Exchange> exchanges;
    for (auto [index, input] : llvm::enumerate(window.getInputs())) {
      llvm::append_range(exchanges,
                         getHaloExchanges(rule, index, input.getType(), dims,
                                          factor, factorShards));
    }
    return exchanges;
  }

  FailureOr<SmallVector<Value>> localize(Operation *op,
                                         LocalContext &context) const {
    auto window = cast<ReduceWindowOp>(op);
    SmallVector<SplitDim> dims =
        getSplitDims(window, context.getRule(), [&](unsigned factor) {
          return context.getNumShards(factor);
        });
    unsigned numInputs = window.getInputs().size();
    SmallVector<Value> inputs;
    for (unsigned i = 0; i < numInputs; ++i) {
      inputs.push_back(
          fetchHalo(context, context.getOperands()[i], getInputs(dims),
                    context.getOperands()[numInputs + i], op->getLoc()));
    }
    SmallVector<Value> results = alpa::cloneLocal(op, context);
    auto local = cast<ReduceWindowOp>(results.front().getDefiningOp());
    local.getInputsMutable().assign(inputs);
    if (!dims.empty()) {
      local.setPaddingAttr(getLocalPadding(context, window.getPadding(),
                                           context.getRule().operands[0].size(),
                                           dims));
    }
    return scanBlocks(window, local, context);
  }

private:
  /// before: y = reduce_window(x)
  /// after:  y = reduce_window(block), then see `BlockScan`
  static SmallVector<Value> scanBlocks(ReduceWindowOp op, ReduceWindowOp local,
                                       LocalContext &context) {
    SmallVector<Value> results(local->getResults());
    const ShardingRule &rule = context.getRule();
    SmallVector<std::pair<int64_t, unsigned>> split;
    for (auto [dim, factors] : llvm::enumerate(rule.results[0])) {
      if (!factors.empty() && rule.factors[factors.front()].isOrdered() &&
          context.getNumShards(factors.front()) > 1) {
        split.emplace_back(dim, factors.front());
        shorten(local, dim, context.getLocalSize(factors.front()));
      }
    }
    for (auto [dim, factor] : split) {
      bool isReverse = isCumulative(op, dim, /*isReverse=*/true);
      BlockScan(local, dim, isReverse, factor, context).run(results);
    }
    return results;
  }

  static bool isAnyCumulative(ReduceWindowOp window, int64_t dim) {
    return isCumulative(window, dim, /*isReverse=*/false) ||
           isCumulative(window, dim, /*isReverse=*/true);
  }

  /// The window along a dimension; none where nothing is known of it.
  static std::optional<Window> getWindow(ReduceWindowOp op, int64_t dim) {
    std::optional<Padding> padding = getPadding(op.getPadding(), dim);
    auto input = cast<RankedTensorType>(op.getInputs().front().getType());
    auto result = cast<RankedTensorType>(op->getResult(0).getType());
    if (!padding || dim >= input.getRank()) {
      return std::nullopt;
    }
    Window window{input.getDimSize(dim),
                  getSizeAt(op.getWindowDimensions(), dim),
                  result.getDimSize(dim)};
    window.stride = getSizeAt(op.getWindowStrides(), dim);
    window.lowPadding = padding->first;
    window.baseDilation = getSizeAt(op.getBaseDilations(), dim);
    window.windowDilation = getSizeAt(op.getWindowDilations(), dim);
    return window;
  }

  static WindowFactors getFactors(RuleBuilder &builder, ReduceWindowOp op,
                                  int64_t dim, bool isScan) {
    WindowFactors factors;
    if (isScan && combinesBlocks(op)) {
      factors.input = factors.outputs =
          builder.addFactor(builder.getResultSize(0, dim), FactorKind::Ordered);
    }
    // The halo of a window over everything is everything.
    if (isScan) {
      return factors;
    }
    if (std::optional<Window> window = getWindow(op, dim)) {
      factors = addWindow(builder, *window, /*isSum=*/false);
    }
    return factors;
  }

  /// The dimensions along which the window is split.
  static SmallVector<SplitDim>
  getSplitDims(ReduceWindowOp op, const ShardingRule &rule,
               function_ref<int64_t(unsigned)> getShards) {
    SmallVector<SplitDim> found;
    for (auto [dim, factors] : llvm::enumerate(rule.operands[0])) {
      if (!factors.empty() && !rule.factors[factors.front()].isOrdered() &&
          getShards(factors.front()) > 1) {
        auto number = static_cast<int64_t>(dim);
        SplitWindow window = *SplitWindow::find(*getWindow(op, number), false);
        found.push_back(
            {number, window, {number, factors.front(), window.getHalo()}});
      }
    }
    return found;
  }

  /// Elements that are combined for each.
  static int64_t getWindowSize(ReduceWindowOp window, int64_t dim,
                               bool isScan) {
    ArrayRef<int64_t> sizes = window.getWindowDimensions();
    int64_t size = dim < static_cast<int64_t>(sizes.size()) ? sizes[dim] : 1;
    return isScan ? std::min(size, kTreeWindow) : size;
  }

  /// Makes a cumulative window that of a block.
  static void shorten(ReduceWindowOp local, int64_t dim, int64_t size) {
    SmallVector<int64_t> sizes(local.getWindowDimensions());
    sizes[dim] = size;
    local.setWindowDimensions(sizes);
    SmallVector<int64_t> padding(local.getPadding()->getValues<int64_t>());
    for (int64_t side : {2 * dim, 2 * dim + 1}) {
      padding[side] = padding[side] == 0 ? 0 : size - 1;
    }
    local.setPaddingAttr(
        DenseIntElementsAttr::get(local.getPadding()->getType(), padding));
  }
};

} // namespace

void stablehlo::attachWindowRules(MLIRContext &context) {
  ReduceWindowOp::attachInterface<ReduceWindowRule>(context);
}
