//===- Slices.cpp - Rules of slices and updates of slices -----------------===//
//
// Dimensions that are taken whole are parallel, and so are the groups of one of
// which the same element of each is taken; all others are replicated.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/LocalEmitter.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "dialects/stablehlo/ShardingRules/ShardingRules.h"
#include "mlir/IR/Matchers.h"
#include "stablehlo/dialect/StablehloOps.h"

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
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
    auto slice = cast<SliceOp>(results.front().getDefiningOp());
    SmallVector<int64_t> limits =
        getLocalSizes(cast<SliceOp>(op).getLimitIndices(), op->getOperand(0),
                      context.getOperands().front());
    for (auto [dim, limit] : llvm::enumerate(limits)) {
      if (takesOneOfEach(cast<SliceOp>(op), dim)) {
        limit = getShape(context.getOperands().front())[dim];
      }
    }
    slice.setLimitIndices(limits);
    return results;
  }
};

struct DynamicSliceRule : RuleModel<DynamicSliceRule, DynamicSliceOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    for (int64_t dim = 0; dim < builder.getResultRank(0); ++dim) {
      if (builder.getOperandSize(0, dim) == builder.getResultSize(0, dim)) {
        builder.share(0, dim, 0, dim);
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
      DimFactors factors =
          isWhole ? builder.addParallel(size) : builder.addReplicated(size);
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
};

} // namespace

void stablehlo::attachSliceRules(MLIRContext &context) {
  SliceOp::attachInterface<SliceRule>(context);
  DynamicSliceOp::attachInterface<DynamicSliceRule>(context);
  DynamicUpdateSliceOp::attachInterface<DynamicUpdateSliceRule>(context);
}
