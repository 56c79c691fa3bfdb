//===- Rearrangement.cpp - Rules of operators that turn round and join ----===//
//
// reverse and concatenate: along the dimension that is turned round or joined,
// devices send each other what comes to lie in other blocks.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/BlockMoves.h"
#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/LocalEmitter.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "dialects/stablehlo/ShardingRules/ShardingRules.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::Exchange;
using alpa::LocalContext;
using alpa::OperatorRole;
using alpa::ShardingRule;

namespace {

/// What is turned round in a block goes to the block as far from the end as
/// this one is from the front.
struct ReverseRule : RuleModel<ReverseRule, ReverseOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    ArrayRef<int64_t> reversed = cast<ReverseOp>(op).getDimensions();
    for (int64_t dim = 0; dim < builder.getResultRank(0); ++dim) {
      DimFactors factors = builder.addFactor(
          builder.getResultSize(0, dim), alpa::FactorKind::Parallel,
          alpa::ReductionKind::Sum,
          /*isWindowed=*/llvm::is_contained(reversed, dim));
      builder.appendOperand(0, dim, factors);
      builder.appendResult(0, dim, factors);
    }
    if (isSummable(op->getResult(0).getType())) {
      builder.getRule().addLinear(0);
    }
    return builder.finish();
  }
  OperatorRole getOperatorRole(Operation *op) const {
    // Whether its operand is gathered instead is its own choice.
    bool exchanges = llvm::any_of(
        getShardingRule(op).factors,
        [](const alpa::Factor &factor) { return factor.isWindowed; });
    return exchanges ? OperatorRole::Leader : OperatorRole::Follower;
  }

  SmallVector<Exchange> getExchanges(Operation *op, const ShardingRule &rule,
                                     unsigned factor,
                                     ArrayRef<int64_t> factorShards) const {
    Exchange exchange;
    exchange.bytes = getBlockBytes(op->getResult(0).getType(), rule.results[0],
                                   factorShards);
    for (int64_t block : llvm::seq(factorShards[factor])) {
      exchange.routes.emplace_back(block, factorShards[factor] - 1 - block);
    }
    return {exchange};
  }

  /// before: y = reverse(x)
  /// after:  y = collective_permute(reverse(x)), the first block to the last
  FailureOr<SmallVector<Value>> localize(Operation *op,
                                         LocalContext &context) const {
    SmallVector<Value> results = alpa::cloneLocal(op, context);
    for (const DimFactors &factors : context.getRule().results[0]) {
      if (!isExchanged(context.getRule(), factors, [&](unsigned factor) {
            return context.getNumShards(factor);
          })) {
        continue;
      }
      auto targets = llvm::to_vector(llvm::reverse(
          llvm::seq<int64_t>(context.getNumShards(factors.front()))));
      results[0] = context.permute(results[0], targets, factors.front());
    }
    return results;
  }
};

/// Of the dimension that is joined, devices send each other what comes to lie
/// in other blocks.
struct ConcatenateRule : RuleModel<ConcatenateRule, ConcatenateOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    int64_t joined = cast<ConcatenateOp>(op).getDimension();
    auto all = llvm::to_vector<2>(llvm::seq<unsigned>(op->getNumOperands()));
    for (int64_t dim = 0; dim < builder.getResultRank(0); ++dim) {
      if (dim == joined) {
        addMovedBlocks(builder, all, dim);
        continue;
      }
      DimFactors factors = builder.addParallel(builder.getResultSize(0, dim));
      builder.appendResult(0, dim, factors);
      for (unsigned i : all) {
        builder.appendOperand(i, dim, factors);
      }
    }
    SmallVector<unsigned, 2> nonZero;
    for (unsigned i : all) {
      if (!isKnownZero(op->getOperand(i))) {
        nonZero.push_back(i);
      }
    }
    if (isSummable(op->getResult(0).getType())) {
      builder.getRule().addLinear(all);
      if (!nonZero.empty() && nonZero.size() < all.size()) {
        builder.getRule().addLinear(nonZero);
      }
    }
    return builder.finish();
  }
  OperatorRole getOperatorRole(Operation *op) const {
    return getRoleOf(getShardingRule(op));
  }

  SmallVector<Exchange> getExchanges(Operation *op, const ShardingRule &rule,
                                     unsigned factor,
                                     ArrayRef<int64_t> factorShards) const {
    SmallVector<Exchange> exchanges;
    int64_t numBlocks = factorShards[factor];
    double bytes = getBlockBytes(op->getResult(0).getType(), rule.results[0],
                                 factorShards);
    for (const MovedDim &moved : getMoved(cast<ConcatenateOp>(op))) {
      double numRows = static_cast<double>(moved.targetSize) /
                       static_cast<double>(numBlocks);
      llvm::append_range(exchanges,
                         getMoveExchanges(moved, numBlocks, bytes / numRows));
    }
    return exchanges;
  }

  FailureOr<SmallVector<Value>> localize(Operation *op,
                                         LocalContext &context) const {
    auto concatenate = cast<ConcatenateOp>(op);
    const ShardingRule &rule = context.getRule();
    auto joined = static_cast<int64_t>(concatenate.getDimension());
    if (joined >= static_cast<int64_t>(rule.results[0].size()) ||
        !isExchanged(rule, rule.results[0][joined], [&](unsigned factor) {
          return context.getNumShards(factor);
        })) {
      return alpa::cloneLocal(op, context);
    }
    Location loc = op->getLoc();
    Value result =
        LocalEmitter(context, loc)
            .splat(cast<RankedTensorType>(context.getResultTypes().front()), 0);
    for (auto [operand, moved] :
         llvm::zip_equal(context.getOperands(), getMoved(concatenate))) {
      result = moveBlocks(context, operand, result, moved,
                          rule.results[0][joined].front(), loc);
    }
    return SmallVector<Value>{result};
  }

private:
  /// Where the elements of every operand come to lie.
  static SmallVector<MovedDim> getMoved(ConcatenateOp op) {
    auto dim = static_cast<int64_t>(op.getDimension());
    int64_t size = cast<RankedTensorType>(op.getType()).getDimSize(dim);
    SmallVector<MovedDim> moved;
    int64_t target = 0;
    for (Value operand : op->getOperands()) {
      int64_t own = cast<RankedTensorType>(operand.getType()).getDimSize(dim);
      moved.push_back({dim, own, size, {0, target, own}});
      target += own;
    }
    return moved;
  }
};

} // namespace

void stablehlo::attachRearrangementRules(MLIRContext &context) {
  ReverseOp::attachInterface<ReverseRule>(context);
  ConcatenateOp::attachInterface<ConcatenateRule>(context);
}
