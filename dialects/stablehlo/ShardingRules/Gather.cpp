//===- Gather.cpp - Rule of gather ----------------------------------------===//
//
// Loops: the batch of the indices, the offset dimensions that are taken whole,
// and, for a table that is looked up row by row, the rows: a sum in which every
// device contributes the rows it has and zero for all others.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/LocalEmitter.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::FactorKind;
using alpa::LocalContext;
using alpa::OperatorRole;
using alpa::ShardingRule;

namespace {

RankedTensorType getTensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

int64_t findIndex(ArrayRef<int64_t> values, int64_t value) {
  const auto *it = llvm::find(values, value);
  return it == values.end() ? -1 : it - values.begin();
}

/// Result dimensions that come from the indices, in order.
SmallVector<int64_t> getBatchDims(GatherOp gather) {
  ArrayRef<int64_t> offsetDims = gather.getDimensionNumbers().getOffsetDims();
  SmallVector<int64_t> dims;
  for (int64_t dim = 0; dim < getTensorType(gather.getResult()).getRank();
       ++dim) {
    if (!llvm::is_contained(offsetDims, dim)) {
      dims.push_back(dim);
    }
  }
  return dims;
}

struct GatherRule : RuleModel<GatherRule, GatherOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto gather = cast<GatherOp>(op);
    RuleBuilder builder(op);
    ShardingRule &rule = builder.getRule();
    rule.untouchedOperands.push_back(0);
    if (!builder.isUsable() ||
        static_cast<int64_t>(gather.getSliceSizes().size()) !=
            builder.getOperandRank(0) ||
        !addBatchDims(gather, builder) || !addOperandDims(gather, builder)) {
      builder.invalidate();
      return builder.finish();
    }
    if (isSummable(op->getResult(0).getType())) {
      rule.addLinear(0);
    }
    return builder.finish();
  }

  FailureOr<SmallVector<Value>> localize(Operation *op,
                                         LocalContext &context) const {
    auto gather = cast<GatherOp>(op);
    GatherDimensionNumbersAttr dims = gather.getDimensionNumbers();
    SmallVector<Value> results = alpa::cloneLocal(op, context);
    auto local = cast<GatherOp>(results.front().getDefiningOp());

    auto globalType = getTensorType(op->getOperand(0));
    auto localType = getTensorType(context.getOperands()[0]);
    SmallVector<int64_t> sliceSizes(gather.getSliceSizes());
    for (auto [dim, size] : llvm::enumerate(sliceSizes)) {
      if (size == globalType.getDimSize(dim)) {
        size = localType.getDimSize(dim);
      }
    }
    local.setSliceSizes(sliceSizes);

    SmallVector<int64_t> factors = getRowFactors(gather, context);
    if (llvm::all_of(factors, [](int64_t factor) { return factor < 0; })) {
      return results;
    }

    // Before: rows = gather(table, i).
    // After:  j = clamp(i) - first row; rows = gather(block, j) where j is in
    // the block, else 0.
    OpBuilder &builder = context.getBuilder();
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(local);
    LocalEmitter emit(context, op->getLoc());
    Value indices =
        emit.toSignedIndices(context.getOperands()[1],
                             *std::max_element(globalType.getShape().begin(),
                                               globalType.getShape().end()));
    auto indicesType = getTensorType(indices);
    int64_t vectorDim = dims.getIndexVectorDim();
    indices = clampToTable(gather, indices, emit);
    indices = emit.binary<SubtractOp>(
        indices, emit.indexOffsets(indicesType, vectorDim, factors));

    Value mask = getInside(indices, vectorDim, factors, context, emit);
    local.getStartIndicesMutable().assign(indices);

    builder.setInsertionPointAfter(local);
    auto resultType = getTensorType(local.getResult());
    Value wideMask =
        BroadcastInDimOp::create(
            builder, op->getLoc(),
            RankedTensorType::get(resultType.getShape(), builder.getI1Type()),
            mask, builder.getDenseI64ArrayAttr(getBatchDims(gather)))
            .getResult();
    return SmallVector<Value>{
        emit.select(wideMask, local.getResult(), emit.neutral(resultType))};
  }

private:
  /// Indices to result; operand batching dimensions are among them.
  static bool addBatchDims(GatherOp gather, RuleBuilder &builder) {
    GatherDimensionNumbersAttr dims = gather.getDimensionNumbers();
    ArrayRef<int64_t> indexBatching = dims.getStartIndicesBatchingDims();
    ArrayRef<int64_t> operandBatching = dims.getOperandBatchingDims();
    SmallVector<int64_t> batchDims = getBatchDims(gather);
    size_t nextBatch = 0;
    for (int64_t dim = 0; dim < builder.getOperandRank(1); ++dim) {
      if (dim == dims.getIndexVectorDim()) {
        continue;
      }
      if (nextBatch >= batchDims.size()) {
        return false;
      }
      DimFactors factors = builder.addParallel(builder.getOperandSize(1, dim));
      builder.appendOperand(1, dim, factors);
      builder.appendResult(0, batchDims[nextBatch++], factors);
      int64_t position = findIndex(indexBatching, dim);
      if (position >= 0 &&
          position < static_cast<int64_t>(operandBatching.size())) {
        builder.appendOperand(0, operandBatching[position], factors);
      }
    }
    return true;
  }

  /// Operand to result.
  static bool addOperandDims(GatherOp gather, RuleBuilder &builder) {
    GatherDimensionNumbersAttr dims = gather.getDimensionNumbers();
    ArrayRef<int64_t> sliceSizes = gather.getSliceSizes();
    ArrayRef<int64_t> offsetDims = dims.getOffsetDims();
    bool isRowSummable = isSummable(gather.getResult().getType());
    size_t nextOffset = 0;
    for (int64_t dim = 0; dim < builder.getOperandRank(0); ++dim) {
      if (llvm::is_contained(dims.getOperandBatchingDims(), dim)) {
        continue;
      }
      int64_t resultDim = -1;
      if (!llvm::is_contained(dims.getCollapsedSliceDims(), dim)) {
        if (nextOffset >= offsetDims.size()) {
          return false;
        }
        resultDim = offsetDims[nextOffset++];
      }
      int64_t size = builder.getOperandSize(0, dim);
      if (sliceSizes[dim] == size) {
        if (resultDim >= 0) {
          builder.share(0, dim, 0, resultDim);
        }
      } else if (sliceSizes[dim] == 1 &&
                 llvm::is_contained(dims.getStartIndexMap(), dim) &&
                 isRowSummable) {
        builder.appendOperand(0, dim,
                              builder.addFactor(size, FactorKind::Reduction));
      }
    }
    return true;
  }

  /// Per component of the index vectors the factor of the rows it selects, if
  /// that is split, else -1.
  static SmallVector<int64_t> getRowFactors(GatherOp gather,
                                            LocalContext &context) {
    const ShardingRule &rule = context.getRule();
    SmallVector<int64_t> factors;
    for (int64_t dim : gather.getDimensionNumbers().getStartIndexMap()) {
      const DimFactors &dimFactors = rule.operands[0][dim];
      bool isSplit =
          !dimFactors.empty() &&
          rule.factors[dimFactors.front()].kind == FactorKind::Reduction &&
          context.getNumShards(dimFactors.front()) > 1;
      factors.push_back(isSplit ? static_cast<int64_t>(dimFactors.front())
                                : -1);
    }
    return factors;
  }

  /// StableHLO moves slices that stick out of the operand back into it.
  static Value clampToTable(GatherOp gather, Value indices,
                            LocalEmitter &emit) {
    auto type = getTensorType(indices);
    auto operandType = getTensorType(gather.getOperand());
    SmallVector<int64_t> limits;
    for (int64_t dim : gather.getDimensionNumbers().getStartIndexMap()) {
      limits.push_back(operandType.getDimSize(dim) -
                       gather.getSliceSizes()[dim]);
    }
    Value limit =
        limits.size() == 1
            ? emit.splat(type, limits[0])
            : emit.broadcast(emit.vector(limits, type.getElementType()), type,
                             gather.getDimensionNumbers().getIndexVectorDim());
    return emit.binary<MinOp>(emit.binary<MaxOp>(indices, emit.splat(type, 0)),
                              limit);
  }

  /// Which index vectors select rows of the device's block, shaped like the
  /// batch.
  static Value getInside(Value indices, int64_t vectorDim,
                         ArrayRef<int64_t> factors, LocalContext &context,
                         LocalEmitter &emit) {
    Value mask;
    for (auto [component, factor] : llvm::enumerate(factors)) {
      if (factor < 0) {
        continue;
      }
      Value row = getComponent(indices, vectorDim, component, emit);
      auto rowType = getTensorType(row);
      Value isInside = emit.binary<AndOp>(
          emit.compare(row, emit.splat(rowType, 0), ComparisonDirection::GE),
          emit.compare(row, emit.splat(rowType, context.getLocalSize(factor)),
                       ComparisonDirection::LT));
      mask = mask ? emit.binary<AndOp>(mask, isInside) : isInside;
    }
    return mask;
  }

  /// One component of the index vectors, shaped like the batch.
  static Value getComponent(Value indices, int64_t vectorDim, int64_t component,
                            LocalEmitter &emit) {
    auto type = getTensorType(indices);
    if (vectorDim >= type.getRank()) {
      return indices;
    }
    SmallVector<int64_t> shape(type.getShape());
    shape.erase(shape.begin() + vectorDim);
    return emit.reshape(
        emit.slice(indices, vectorDim, component, component + 1), shape);
  }
};

} // namespace

void stablehlo::attachGatherRules(MLIRContext &context) {
  GatherOp::attachInterface<GatherRule>(context);
}
