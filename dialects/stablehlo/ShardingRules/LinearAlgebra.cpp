//===- LinearAlgebra.cpp - Rules of fft, cholesky, triangular_solve -------===//

#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "stablehlo/dialect/StablehloOps.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::ShardingRule;

namespace {

struct FftRule : RuleModel<FftRule, FftOp> {
  ShardingRule getShardingRule(Operation *op) const {
    ArrayRef<int64_t> lengths = cast<FftOp>(op).getFftLength();
    RuleBuilder builder(op);
    int64_t numBatch =
        builder.getOperandRank(0) - static_cast<int64_t>(lengths.size());
    for (int64_t dim = 0; dim < numBatch; ++dim) {
      builder.share(0, dim, 0, dim);
    }
    double length = 1;
    for (int64_t size : lengths) {
      length *= static_cast<double>(size);
    }
    // The customary count for a transform of n points is 5 n log2(n).
    double count = std::max(getNumElements(op->getOperand(0)),
                            getNumElements(op->getResult(0)));
    builder.getRule().flops = 5 * count * std::log2(std::max(2.0, length));
    // A sum with coefficients of absolute value 1.
    if (isSummable(op->getResult(0).getType())) {
      builder.getRule().addLinear(0);
    }
    return builder.finish();
  }
};

struct CholeskyRule : RuleModel<CholeskyRule, CholeskyOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    int64_t rank = builder.getOperandRank(0);
    for (int64_t dim = 0; dim + 2 < rank; ++dim) {
      builder.share(0, dim, 0, dim);
    }
    // n^3 / 3 for a matrix of n x n.
    builder.getRule().flops =
        getNumElements(op->getOperand(0)) *
        static_cast<double>(builder.getOperandSize(0, rank - 1)) / 3;
    return builder.finish();
  }
};

/// Besides the batch, the right-hand sides are independent of each other.
struct TriangularSolveRule : RuleModel<TriangularSolveRule, TriangularSolveOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    int64_t rank = builder.getResultRank(0);
    for (int64_t dim = 0; dim + 2 < rank; ++dim) {
      DimFactors batch = builder.addParallel(builder.getResultSize(0, dim));
      builder.appendOperand(0, dim, batch);
      builder.appendOperand(1, dim, batch);
      builder.appendResult(0, dim, batch);
    }
    bool isLeft = cast<TriangularSolveOp>(op).getLeftSide();
    int64_t sides = isLeft ? rank - 1 : rank - 2;
    builder.share(1, sides, 0, sides);
    // n^2 for every right-hand side; none of a matrix of unknown size.
    int64_t size = builder.getOperandSize(0, rank - 1);
    builder.getRule().flops = getNumElements(op->getResult(0)) *
                              static_cast<double>(std::max<int64_t>(0, size));
    // What it divides by may be zero.
    if (isSummable(op->getResult(0).getType())) {
      builder.getRule().addAlgebraic(1);
    }
    return builder.finish();
  }
};

} // namespace

void stablehlo::attachLinearAlgebraRules(MLIRContext &context) {
  FftOp::attachInterface<FftRule>(context);
  CholeskyOp::attachInterface<CholeskyRule>(context);
  TriangularSolveOp::attachInterface<TriangularSolveRule>(context);
}
