//===- Reduction.cpp - Rule of reduce -------------------------------------===//
//
// Reduced dimensions are split over the monoid of the body. Of a body that is
// none of those that collectives know (argmax), every device reduces its block,
// and the body combines what all of them have found.
//
//===----------------------------------------------------------------------===//

#include "dialects/alpa/GatheredDimension.h"
#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/KnownValues.h"
#include "dialects/stablehlo/ShardingRules/LocalEmitter.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "dialects/stablehlo/ShardingRules/ShardingRules.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::FactorKind;
using alpa::LocalContext;
using alpa::OperatorRole;
using alpa::ReductionKind;
using alpa::ShardingRule;

namespace {

/// The monoid over which the reduced dimensions may be split; none for several
/// operands (argmax), for other bodies, and for sums that cannot be held as
/// shares.
std::optional<ReductionKind> getSplitKind(ReduceOp reduce) {
  if (reduce.getInputs().size() != 1 || reduce->getNumResults() != 1) {
    return std::nullopt;
  }
  std::optional<ReductionKind> kind = getReductionKind(reduce.getBody());
  bool isArithmetic =
      kind == ReductionKind::Sum || kind == ReductionKind::Product;
  if (isArithmetic && !isSummable(reduce->getResult(0).getType())) {
    return std::nullopt;
  }
  return kind;
}

/// Whether the body combines blocks itself: of a reduction that may be computed
/// in any order, body and initial values are a monoid.
bool combinesBlocks(ReduceOp reduce) {
  return reduce.getInputs().size() > 0 &&
         reduce.getInputs().size() == reduce->getNumResults() &&
         !getReductionKind(reduce.getBody());
}

struct ReduceRule : RuleModel<ReduceRule, ReduceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto reduce = cast<ReduceOp>(op);
    ArrayRef<int64_t> reduced = reduce.getDimensions();
    unsigned numInputs = reduce.getInputs().size();
    std::optional<ReductionKind> kind = getSplitKind(reduce);
    bool isElementwise = combinesElements(reduce.getInitValues());
    RuleBuilder builder(op);
    int64_t resultDim = 0;
    for (int64_t dim = 0; dim < builder.getOperandRank(0); ++dim) {
      int64_t size = builder.getOperandSize(0, dim);
      DimFactors factors;
      if (llvm::is_contained(reduced, dim)) {
        factors = !isElementwise ? builder.addReplicated(size)
                  : kind ? builder.addFactor(size, FactorKind::Reduction, *kind)
                  : combinesBlocks(reduce)
                      ? builder.addFactor(size, FactorKind::Ordered)
                      : builder.addReplicated(size);
      } else {
        factors = isElementwise ? builder.addParallel(size)
                                : builder.addReplicated(size);
        for (unsigned i = 0; i < op->getNumResults(); ++i) {
          builder.appendResult(i, resultDim, factors);
        }
        ++resultDim;
      }
      for (unsigned i = 0; i < numInputs; ++i) {
        builder.appendOperand(i, dim, factors);
      }
    }
    ShardingRule &rule = builder.getRule();
    if (numInputs > 0) {
      rule.flops = numInputs * getNumElements(op->getOperand(0));
    }
    // A sum of shares is a share, if the initial value is not added by each.
    if (kind == ReductionKind::Sum &&
        keepsShares(op->getOperand(0).getType(), op->getResult(0).getType())) {
      rule.addLinear({0, 1});
      if (isKnownZero(op->getOperand(1))) {
        rule.addLinear(0);
      }
    }
    return builder.finish();
  }

  OperatorRole getOperatorRole(Operation *) const {
    return OperatorRole::Follower;
  }

  /// Every device would start from the initial value; where combining it twice
  /// changes the result, only the first block of the reduced loops does.
  FailureOr<SmallVector<Value>> localize(Operation *op,
                                         LocalContext &context) const {
    SmallVector<Value> results = alpa::cloneLocal(op, context);
    if (combinesBlocks(cast<ReduceOp>(op))) {
      return combineBlocks(cast<ReduceOp>(results.front().getDefiningOp()),
                           context);
    }
    std::optional<ReductionKind> kind = getSplitKind(cast<ReduceOp>(op));
    if (kind != ReductionKind::Sum && kind != ReductionKind::Product) {
      return results;
    }
    int64_t neutral = kind == ReductionKind::Sum ? 0 : 1;
    if (getKnownSplat(op->getOperand(1)) == static_cast<double>(neutral)) {
      return results;
    }
    OpBuilder::InsertionGuard guard(context.getBuilder());
    Operation *local = results.front().getDefiningOp();
    context.getBuilder().setInsertionPoint(local);
    LocalEmitter emit(context, op->getLoc());
    Value init = context.getOperands()[1];
    auto initType = cast<RankedTensorType>(init.getType());
    const ShardingRule &rule = context.getRule();
    for (auto [index, factor] : llvm::enumerate(rule.factors)) {
      if (factor.kind == FactorKind::Reduction &&
          context.getNumShards(index) > 1) {
        Value isFirst = emit.isFirstBlock(index);
        init = emit.select(isFirst, init, emit.splat(initType, neutral));
      }
    }
    local->setOperand(1, init);
    return results;
  }

private:
  /// before: r = reduce(block)
  /// after:  r = reduce(block); g = all_gather(reshape(r) to 1 x ..., or of a
  ///         vector to n x 1); r = reduce(g, over the devices)
  static SmallVector<Value> combineBlocks(ReduceOp local,
                                          LocalContext &context) {
    OpBuilder &builder = context.getBuilder();
    LocalEmitter emit(context, local.getLoc());
    SmallVector<Value> results(local->getResults());
    for (auto [index, factor] : llvm::enumerate(context.getRule().factors)) {
      if (!factor.isOrdered() || context.getNumShards(index) == 1) {
        continue;
      }
      SmallVector<int64_t> shape(
          cast<RankedTensorType>(results.front().getType()).getShape());
      int64_t dim = alpa::getGatheredDim(shape);
      shape.insert(shape.begin() + dim, 1);
      for (Value &result : results) {
        result = context.gather(emit.reshape(result, shape), dim, index);
      }
      auto combination = cast<ReduceOp>(builder.clone(*local));
      combination.getInputsMutable().assign(results);
      combination.setDimensions({dim});
      results.assign(combination->result_begin(), combination->result_end());
    }
    return results;
  }
};

} // namespace

void stablehlo::attachReductionRules(MLIRContext &context) {
  ReduceOp::attachInterface<ReduceRule>(context);
}
