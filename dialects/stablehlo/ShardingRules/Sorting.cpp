//===- Sorting.cpp - Rules of sort and top_k ------------------------------===//

#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "stablehlo/dialect/ChloOps.h"
#include "stablehlo/dialect/StablehloOps.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::ShardingRule;

namespace {

/// Comparisons of sorting `count` numbers in rows of `size`.
double getSortFlops(double count, int64_t size) {
  return count * std::max(1.0, std::ceil(std::log2(static_cast<double>(size))));
}

/// Rows are sorted independently of each other.
struct SortRule : RuleModel<SortRule, SortOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto sort = cast<SortOp>(op);
    RuleBuilder builder(op);
    int64_t rank = builder.getOperandRank(0);
    auto sorted = static_cast<int64_t>(sort.getDimension());
    if (sorted < 0) {
      sorted += rank;
    }
    for (int64_t dim = 0; dim < rank; ++dim) {
      int64_t size = builder.getOperandSize(0, dim);
      DimFactors factors = dim == sorted ? builder.addReplicated(size)
                                         : builder.addParallel(size);
      for (unsigned i = 0; i < op->getNumResults(); ++i) {
        builder.appendOperand(i, dim, factors);
        builder.appendResult(i, dim, factors);
      }
    }
    if (op->getNumResults() > 0) {
      builder.getRule().flops = getSortFlops(getNumElements(op->getResult(0)),
                                             builder.getOperandSize(0, sorted));
    }
    return builder.finish();
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
    builder.getRule().flops = getSortFlops(getNumElements(op->getOperand(0)),
                                           builder.getOperandSize(0, rank - 1));
    return builder.finish();
  }
};

} // namespace

void stablehlo::attachSortRules(MLIRContext &context) {
  SortOp::attachInterface<SortRule>(context);
}

void stablehlo::attachChloSortRules(MLIRContext &context) {
  chlo::TopKOp::attachInterface<TopKRule>(context);
}
