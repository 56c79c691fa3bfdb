//===- Windows.cpp - Rules of windowed operators --------------------------===//
//
// reduce_window (pooling, cumulative sums) and select_and_scatter (the gradient
// of maximum pooling): a dimension along which the window is one element wide
// is parallel, all others are replicated.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "dialects/stablehlo/ShardingRules/ShardingRules.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "stablehlo/dialect/StablehloOps.h"

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::OperatorRole;
using alpa::ReductionKind;
using alpa::ShardingRule;

namespace {

using OptionalSizes = std::optional<ArrayRef<int64_t>>;

/// Whether an optional per-dimension attribute has its default of 1 at `dim`.
bool isOne(OptionalSizes values, int64_t dim) {
  return !values ||
         (dim < static_cast<int64_t>(values->size()) && (*values)[dim] == 1);
}

bool isUnpadded(std::optional<DenseIntElementsAttr> padding, int64_t dim) {
  if (!padding) {
    return true;
  }
  if (2 * dim + 1 >= padding->getNumElements()) {
    return false;
  }
  auto values = padding->getValues<int64_t>();
  return values[2 * dim] == 0 && values[2 * dim + 1] == 0;
}

struct ReduceWindowRule : RuleModel<ReduceWindowRule, ReduceWindowOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto window = cast<ReduceWindowOp>(op);
    unsigned numInputs = window.getInputs().size();
    RuleBuilder builder(op);
    for (int64_t dim = 0; dim < builder.getResultRank(0); ++dim) {
      if (!combinesElements(window.getInitValues()) ||
          !isOne(window.getWindowDimensions(), dim) ||
          !isOne(window.getWindowStrides(), dim) ||
          !isOne(window.getBaseDilations(), dim) ||
          !isOne(window.getWindowDilations(), dim) ||
          !isUnpadded(window.getPadding(), dim)) {
        continue;
      }
      DimFactors factors = builder.addParallel(builder.getResultSize(0, dim));
      for (unsigned i = 0; i < numInputs; ++i) {
        builder.appendOperand(i, dim, factors);
        builder.appendResult(i, dim, factors);
      }
    }
    ShardingRule &rule = builder.getRule();
    double windowSize = 1;
    for (int64_t size : window.getWindowDimensions()) {
      windowSize *= static_cast<double>(size);
    }
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
};

struct SelectAndScatterRule
    : RuleModel<SelectAndScatterRule, SelectAndScatterOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto scatter = cast<SelectAndScatterOp>(op);
    RuleBuilder builder(op);
    for (int64_t dim = 0; dim < builder.getResultRank(0); ++dim) {
      if (!isOne(scatter.getWindowDimensions(), dim) ||
          !isOne(scatter.getWindowStrides(), dim) ||
          !isUnpadded(scatter.getPadding(), dim)) {
        continue;
      }
      DimFactors factors = builder.addParallel(builder.getResultSize(0, dim));
      builder.appendOperand(0, dim, factors);
      builder.appendOperand(1, dim, factors);
      builder.appendResult(0, dim, factors);
    }
    ShardingRule &rule = builder.getRule();
    rule.flops = getNumElements(op->getResult(0));
    // Where the source goes depends on the operand, what arrives is linear.
    if (isSummable(op->getResult(0).getType()) &&
        getReductionKind(scatter.getScatter()) == ReductionKind::Sum &&
        keepsShares(op->getOperand(1).getType(), op->getResult(0).getType()) &&
        isKnownZero(op->getOperand(2))) {
      rule.addLinear(1);
    }
    return builder.finish();
  }
  OperatorRole getOperatorRole(Operation *op) const {
    return getRoleOf(getShardingRule(op));
  }
};

} // namespace

void stablehlo::attachWindowRules(MLIRContext &context) {
  ReduceWindowOp::attachInterface<ReduceWindowRule>(context);
  SelectAndScatterOp::attachInterface<SelectAndScatterRule>(context);
}
