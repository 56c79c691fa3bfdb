//===- Sorting.cpp - Rules of sort and top_k ------------------------------===//
//
// Rows are independent of each other. A row is sorted in blocks by columnsort.
// Of a row whose greatest elements are looked for, every device takes those of
// its block for candidates.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/ColumnSort.h"
#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/LocalEmitter.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "stablehlo/dialect/ChloOps.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::Exchange;
using alpa::Factor;
using alpa::FactorKind;
using alpa::LocalContext;
using alpa::ShardingRule;

namespace {

/// Comparisons of sorting `count` numbers in rows of `size`.
double getSortFlops(double count, int64_t size) {
  return count * std::max(1.0, std::ceil(std::log2(static_cast<double>(size))));
}

/// Whether a row of so many elements can be sorted in blocks at all. What a
/// sort that is not stable makes of equals that differ in other operands is
/// what the whole makes of them: nothing else says it.
bool canSortBlocks(SortOp sort, int64_t size) {
  if (sort.getInputs().size() > 1 && !sort.getIsStable()) {
    return false;
  }
  Factor row{size, FactorKind::Sorted};
  for (int64_t numBlocks = 2; numBlocks * numBlocks <= size; ++numBlocks) {
    int64_t others = numBlocks - 1;
    if (row.canSplit(numBlocks) || 2 * others * others > size / numBlocks) {
      return row.canSplit(numBlocks);
    }
  }
  return false;
}

/// Rows are sorted independently of each other, each as it is or in blocks.
struct SortRule : RuleModel<SortRule, SortOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    if (op->getNumResults() == 0) {
      return builder.finish();
    }
    int64_t rank = builder.getOperandRank(0);
    auto sort = cast<SortOp>(op);
    int64_t sorted = getSortedDim(sort);
    for (int64_t dim = 0; dim < rank; ++dim) {
      int64_t size = builder.getOperandSize(0, dim);
      FactorKind ofRows = canSortBlocks(sort, size) ? FactorKind::Sorted
                                                    : FactorKind::Replicated;
      DimFactors factors = builder.addFactor(
          size, dim == sorted ? ofRows : FactorKind::Parallel);
      for (unsigned i = 0; i < op->getNumResults(); ++i) {
        builder.appendOperand(i, dim, factors);
        builder.appendResult(i, dim, factors);
      }
    }
    builder.getRule().flops = getSortFlops(getNumElements(op->getResult(0)),
                                           builder.getOperandSize(0, sorted));
    return builder.finish();
  }

  SmallVector<Exchange> getExchanges(Operation *op, const ShardingRule &rule,
                                     unsigned,
                                     ArrayRef<int64_t> factorShards) const {
    ColumnSortWork work =
        getColumnSortWork(cast<SortOp>(op), rule, factorShards);
    Exchange dealt{work.bytes};
    dealt.isDealt = true;
    return {dealt, dealt, Exchange{work.shiftedBytes, 1},
            Exchange{work.returnedBytes, -1}};
  }

  alpa::InnerWork getInnerWork(Operation *op, const ShardingRule &rule,
                               ArrayRef<int64_t> factorShards) const {
    std::optional<unsigned> factor = findSplitRow(op, rule, factorShards);
    if (!factor) {
      return {};
    }
    int64_t size = rule.factors[*factor].size;
    ColumnSortWork work =
        getColumnSortWork(cast<SortOp>(op), rule, factorShards);
    double sorts = ColumnSortWork::kNumSorts;
    return {sorts * getSortFlops(1, size / factorShards[*factor]) /
                getSortFlops(1, size),
            2 * (sorts - 1) * work.bytes};
  }

  FailureOr<SmallVector<Value>> localize(Operation *op,
                                         LocalContext &context) const {
    const ShardingRule &rule = context.getRule();
    auto shards = llvm::map_to_vector(
        llvm::seq<unsigned>(0, rule.factors.size()),
        [&](unsigned factor) { return context.getNumShards(factor); });
    std::optional<unsigned> factor = findSplitRow(op, rule, shards);
    return factor ? ColumnSort(cast<SortOp>(op), *factor, context).run()
                  : alpa::cloneLocal(op, context);
  }

private:
  /// The factor of the rows that are sorted, if it is split.
  static std::optional<unsigned> findSplitRow(Operation *op,
                                              const ShardingRule &rule,
                                              ArrayRef<int64_t> factorShards) {
    if (op->getNumResults() == 0 || rule.isReplicated()) {
      return std::nullopt;
    }
    const DimFactors &factors =
        rule.operands.front()[getSortedDim(cast<SortOp>(op))];
    return factors.empty() || factorShards[factors.front()] == 1
               ? std::nullopt
               : std::optional(factors.front());
  }
};

struct TopKRule : RuleModel<TopKRule, chlo::TopKOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    int64_t rank = builder.getOperandRank(0);
    for (int64_t dim = 0; dim + 1 < rank; ++dim) {
      DimFactors factors = builder.addParallel(builder.getOperandSize(0, dim));
      builder.appendOperand(0, dim, factors);
      for (unsigned i = 0; i < op->getNumResults(); ++i) {
        builder.appendResult(i, dim, factors);
      }
    }
    int64_t size = builder.getOperandSize(0, rank - 1);
    builder.appendOperand(0, rank - 1,
                          builder.addFactor(size, FactorKind::Ordered));
    builder.getRule().flops =
        getSortFlops(getNumElements(op->getOperand(0)), size);
    return builder.finish();
  }

  SmallVector<Exchange> getExchanges(Operation *op, const ShardingRule &rule,
                                     unsigned factor,
                                     ArrayRef<int64_t> factorShards) const {
    auto topK = cast<chlo::TopKOp>(op);
    int64_t size = rule.factors[factor].size / factorShards[factor];
    double share = static_cast<double>(getNumCandidates(topK, size)) /
                   static_cast<double>(topK.getK());
    SmallVector<Exchange> exchanges =
        getIterationExchanges(op, rule, factor, factorShards);
    for (Exchange &exchange : exchanges) {
      exchange.bytes *= share;
    }
    return exchanges;
  }

  /// The greatest are among the greatest of the blocks. The few candidates are
  /// sorted with their indices: to look up the indices of those that top_k
  /// finds would take longer.
  ///
  /// before: v, i = top_k(x, k)
  /// after:  v, i = top_k(block, min(k, size of the block))
  ///         v = all_gather(v); i = all_gather(i + first of the block)
  ///         v, i = sort((v, i) by -v, then i)[:k]
  FailureOr<SmallVector<Value>> localize(Operation *op,
                                         LocalContext &context) const {
    auto topK = cast<chlo::TopKOp>(op);
    const DimFactors &factors = context.getRule().operands[0].back();
    if (factors.empty() || context.getNumShards(factors.front()) == 1) {
      return alpa::cloneLocal(op, context);
    }
    unsigned factor = factors.front();
    LocalEmitter emit(context, op->getLoc());
    int64_t last = context.getRule().operands[0].size() - 1;
    auto [values, indices] =
        emitTopK(context, topK, context.getOperands()[0],
                 getNumCandidates(topK, context.getLocalSize(factor)));
    auto type = cast<RankedTensorType>(indices.getType());
    Value offset = context.getOffset(factor, type.getElementType());
    indices = emit.binary<AddOp>(indices, emit.broadcast(offset, type, last));
    values = context.gather(values, last, factor);
    indices = context.gather(indices, last, factor);
    return takeBest(context, values, indices,
                    static_cast<int64_t>(topK.getK()));
  }

private:
  static int64_t getNumCandidates(chlo::TopKOp topK, int64_t blockSize) {
    return std::min<int64_t>(topK.getK(), blockSize);
  }

  static std::pair<Value, Value> emitTopK(LocalContext &context,
                                          chlo::TopKOp topK, Value operand,
                                          int64_t count) {
    auto type = cast<RankedTensorType>(operand.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape.back() = count;
    auto index = cast<RankedTensorType>(topK.getIndices().getType());
    auto found = chlo::TopKOp::create(context.getBuilder(), topK.getLoc(),
                                      type.clone(shape), index.clone(shape),
                                      operand, count);
    return {found.getValues(), found.getIndices()};
  }

  /// The first `count` of every row of candidates in the order of top_k.
  static SmallVector<Value> takeBest(LocalContext &context, Value values,
                                     Value indices, int64_t count) {
    OpBuilder &builder = context.getBuilder();
    LocalEmitter emit(context, values.getLoc());
    int64_t last = cast<RankedTensorType>(values.getType()).getRank() - 1;
    SmallVector<Value> candidates{values, indices};
    auto sort = SortOp::create(
        builder, values.getLoc(), ValueRange(candidates).getTypes(), candidates,
        builder.getI64IntegerAttr(last), builder.getBoolAttr(false));
    addOrder(sort, context, emit);
    return {emit.slice(sort->getResult(0), last, 0, count),
            emit.slice(sort->getResult(1), last, 0, count)};
  }

  /// From the greatest value, of equal ones from the smallest index.
  static void addOrder(SortOp sort, LocalContext &context, LocalEmitter &emit) {
    OpBuilder &builder = context.getBuilder();
    OpBuilder::InsertionGuard guard(builder);
    SmallVector<Type> types;
    for (Type type : sort->getResultTypes()) {
      types.append(2, cast<RankedTensorType>(type).clone(ArrayRef<int64_t>()));
    }
    Block *order =
        builder.createBlock(&sort.getComparator(), {}, types,
                            SmallVector<Location>(types.size(), sort.getLoc()));
    ValueRange arguments = order->getArguments();
    ComparisonType byValue = getOrder(getElementTypeOrSelf(types.front()));
    Value isGreater = emit.compare(arguments[0], arguments[1],
                                   ComparisonDirection::GT, byValue);
    Value isEqual = emit.compare(arguments[0], arguments[1],
                                 ComparisonDirection::EQ, byValue);
    Value isFirst =
        emit.compare(arguments[2], arguments[3], ComparisonDirection::LT);
    ReturnOp::create(builder, sort.getLoc(),
                     emit.select(isEqual, isFirst, isGreater));
  }

  /// The order in which XLA's top_k has numbers of a type.
  static ComparisonType getOrder(Type element) {
    if (isa<FloatType>(element)) {
      return ComparisonType::TOTALORDER;
    }
    return element.isUnsignedInteger() || element.isInteger(1)
               ? ComparisonType::UNSIGNED
               : ComparisonType::SIGNED;
  }
};

} // namespace

void stablehlo::attachSortRules(MLIRContext &context) {
  SortOp::attachInterface<SortRule>(context);
}

void stablehlo::attachChloSortRules(MLIRContext &context) {
  chlo::TopKOp::attachInterface<TopKRule>(context);
}
