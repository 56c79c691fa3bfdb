//===- Scatter.cpp - Rule of scatter --------------------------------------===//
//
// Loops: window dimensions that are updated whole, the rows that updates are
// scattered to (every device takes the updates of its own rows), and, when
// updates are added, the updates themselves: then every device adds its share
// of the updates to its share of the operand.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/LocalEmitter.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "dialects/stablehlo/ShardingRules/ShardingRules.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::FactorKind;
using alpa::LocalContext;
using alpa::OperatorRole;
using alpa::ReductionKind;
using alpa::ShardingRule;

namespace {

RankedTensorType getTensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Whether shares of the one operand and of its updates are shares of the
/// result, which may be of a wider type.
bool keepsAllShares(ScatterOp scatter) {
  if (scatter.getInputs().size() != 1 || scatter->getNumResults() != 1) {
    return false;
  }
  Type result = scatter->getResult(0).getType();
  return isSummable(result) &&
         keepsShares(scatter.getInputs().front().getType(), result) &&
         keepsShares(scatter.getUpdates().front().getType(), result);
}

/// Whether the body is plain addition on a type with shares of sums.
bool isAddition(ScatterOp scatter) {
  return keepsAllShares(scatter) &&
         getReductionKind(scatter.getUpdateComputation()) == ReductionKind::Sum;
}

/// Whether the body replaces the old element by the update.
bool isReplacement(ScatterOp scatter) {
  Region &body = scatter.getUpdateComputation();
  return keepsAllShares(scatter) && body.hasOneBlock() &&
         body.front().getNumArguments() == 2 &&
         body.front().getOperations().size() == 1 &&
         body.front().back().getNumOperands() == 1 &&
         body.front().back().getOperand(0) == body.front().getArgument(1);
}

/// Appends the factors to a dimension of all operands and results.
struct ScatterShape {
  ScatterShape(RuleBuilder &builder, unsigned numInputs)
      : builder(builder), numInputs(numInputs) {}
  void appendInput(int64_t dim, const DimFactors &factors) {
    for (unsigned i = 0; i < numInputs; ++i) {
      builder.appendOperand(i, dim, factors);
      builder.appendResult(i, dim, factors);
    }
  }
  void appendUpdate(int64_t dim, const DimFactors &factors) {
    for (unsigned i = 0; i < numInputs; ++i) {
      builder.appendOperand(numInputs + 1 + i, dim, factors);
    }
  }
  RuleBuilder &builder;
  unsigned numInputs;
};

struct ScatterRule : RuleModel<ScatterRule, ScatterOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto scatter = cast<ScatterOp>(op);
    RuleBuilder builder(op);
    unsigned numInputs = scatter.getInputs().size();
    ShardingRule &rule = builder.getRule();
    for (unsigned i = 0; i < numInputs; ++i) {
      rule.untouchedOperands.push_back(i);
      rule.untouchedResults.push_back(i);
    }
    if (!builder.isUsable() || numInputs == 0 ||
        op->getNumOperands() != 2 * numInputs + 1 ||
        op->getNumResults() != numInputs) {
      builder.invalidate();
      return builder.finish();
    }
    ScatterShape shape(builder, numInputs);
    if (!addUpdateDims(scatter, builder, shape) ||
        !addWindowDims(scatter, builder, shape)) {
      builder.invalidate();
      return builder.finish();
    }

    if (isAddition(scatter)) {
      rule.flops = getNumElements(op->getOperand(2));
      rule.addLinear({0, 2});
      if (isKnownZero(op->getOperand(0))) {
        rule.addLinear(2);
      }
    } else if (isReplacement(scatter) && scatter.getUniqueIndices()) {
      rule.addLinear({0, 2});
    }
    return builder.finish();
  }

  /// Every device writes the updates of the other devices to a spare row behind
  /// its block and cuts that off again. Indices outside of the block would be
  /// dropped by StableHLO's semantics, but XLA merges the slices that it makes
  /// of a scatter with those around it and then reads other rows.
  ///
  ///   before: scatter(x, i, u)
  ///   after:  j = i - first row; j = 0 <= j < rows ? j : rows
  ///           slice(scatter(pad(block), j, u))
  FailureOr<SmallVector<Value>> localize(Operation *op,
                                         LocalContext &context) const {
    auto scatter = cast<ScatterOp>(op);
    ScatterDimensionNumbersAttr dims = scatter.getScatterDimensionNumbers();
    SmallVector<Value> results = alpa::cloneLocal(op, context);
    Operation *local = results.front().getDefiningOp();

    ArrayRef<int64_t> indexed = dims.getScatterDimsToOperandDims();
    auto globalType = getTensorType(op->getOperand(0));
    SmallVector<int64_t> factors = getRowFactors(scatter, context);
    if (llvm::all_of(factors, [](int64_t factor) { return factor < 0; })) {
      return results;
    }

    OpBuilder &builder = context.getBuilder();
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(local);
    LocalEmitter emit(context, op->getLoc());
    unsigned numInputs = scatter.getInputs().size();
    Value indices =
        emit.toSignedIndices(context.getOperands()[numInputs],
                             *std::max_element(globalType.getShape().begin(),
                                               globalType.getShape().end()));
    indices = emit.binary<SubtractOp>(
        indices, emit.indexOffsets(getTensorType(indices),
                                   dims.getIndexVectorDim(), factors));
    indices =
        redirect(indices, dims.getIndexVectorDim(), factors, context, emit);
    local->setOperand(numInputs, indices);
    // Several indices may lead to the spare row.
    cast<ScatterOp>(local).setUniqueIndices(false);
    cast<ScatterOp>(local).setIndicesAreSorted(false);

    SmallVector<int64_t> splitDims;
    for (auto [dim, factor] : llvm::zip(indexed, factors)) {
      if (factor >= 0) {
        splitDims.push_back(dim);
      }
    }
    for (unsigned input = 0; input < numInputs; ++input) {
      local->setOperand(input, addSpareRows(local->getOperand(input), splitDims,
                                            emit, builder, op->getLoc()));
      auto padded = getTensorType(local->getOperand(input));
      auto result = getTensorType(local->getResult(input));
      local->getResult(input).setType(result.clone(padded.getShape()));
    }
    builder.setInsertionPointAfter(local);
    for (Value &result : results) {
      for (int64_t dim : splitDims) {
        int64_t rows = getTensorType(result).getDimSize(dim) - 1;
        result = emit.slice(result, dim, 0, rows);
      }
    }
    return results;
  }

private:
  /// Per component of the index vectors the factor of the rows it selects, if
  /// that is split, else -1.
  static SmallVector<int64_t> getRowFactors(ScatterOp scatter,
                                            LocalContext &context) {
    SmallVector<int64_t> factors;
    for (int64_t dim :
         scatter.getScatterDimensionNumbers().getScatterDimsToOperandDims()) {
      const DimFactors &dimFactors = context.getRule().results[0][dim];
      bool isSplit = isScattered(scatter, dim) && !dimFactors.empty() &&
                     context.getNumShards(dimFactors.front()) > 1;
      factors.push_back(isSplit ? static_cast<int64_t>(dimFactors.front())
                                : -1);
    }
    return factors;
  }

  /// Indices outside of the block become the number of its rows; components of
  /// dimensions that are not split stay as they are.
  static Value redirect(Value indices, int64_t indexVectorDim,
                        ArrayRef<int64_t> factors, LocalContext &context,
                        LocalEmitter &emit) {
    auto type = getTensorType(indices);
    // What an index of a dimension that is not split is always between.
    unsigned width = type.getElementTypeBitWidth();
    int64_t least = llvm::minIntN(width), most = llvm::maxIntN(width);
    SmallVector<int64_t> first, rows;
    for (int64_t factor : factors) {
      first.push_back(factor >= 0 ? 0 : least);
      rows.push_back(factor >= 0 ? context.getLocalSize(factor) : most);
    }
    auto broadcast = [&](ArrayRef<int64_t> values) {
      if (values.size() == 1) {
        return emit.splat(type, values.front());
      }
      return emit.broadcast(emit.vector(values, type.getElementType()), type,
                            indexVectorDim);
    };
    Value spare = broadcast(rows);
    Value isInside = emit.binary<AndOp>(
        emit.compare(indices, broadcast(first), ComparisonDirection::GE),
        emit.compare(indices, spare, ComparisonDirection::LT));
    return emit.select(isInside, indices, spare);
  }

  static Value addSpareRows(Value block, ArrayRef<int64_t> dims,
                            LocalEmitter &emit, OpBuilder &builder,
                            Location loc) {
    auto type = getTensorType(block);
    SmallVector<int64_t> none(type.getRank(), 0), high(none);
    SmallVector<int64_t> shape(type.getShape());
    for (int64_t dim : dims) {
      high[dim] = 1;
      ++shape[dim];
    }
    Value zero =
        emit.splat(RankedTensorType::get({}, type.getElementType()), 0);
    return PadOp::create(builder, loc, type.clone(shape), block, zero,
                         builder.getDenseI64ArrayAttr(none),
                         builder.getDenseI64ArrayAttr(high),
                         builder.getDenseI64ArrayAttr(none))
        .getResult();
  }

  /// Dimensions of the updates that run over the indices.
  static bool addUpdateDims(ScatterOp scatter, RuleBuilder &builder,
                            ScatterShape &shape) {
    ScatterDimensionNumbersAttr dims = scatter.getScatterDimensionNumbers();
    unsigned indices = shape.numInputs;
    ArrayRef<int64_t> indexBatching = dims.getScatterIndicesBatchingDims();
    ArrayRef<int64_t> inputBatching = dims.getInputBatchingDims();
    bool isSplittable = isAddition(scatter);
    int64_t updateDim = -1;
    for (int64_t dim = 0; dim < builder.getOperandRank(indices); ++dim) {
      if (dim == dims.getIndexVectorDim()) {
        continue;
      }
      do {
        ++updateDim;
      } while (llvm::is_contained(dims.getUpdateWindowDims(), updateDim));
      int64_t size = builder.getOperandSize(indices, dim);
      const auto *batching = llvm::find(indexBatching, dim);
      DimFactors factors;
      if (batching != indexBatching.end()) {
        size_t position = batching - indexBatching.begin();
        if (position >= inputBatching.size()) {
          return false;
        }
        factors = builder.addParallel(size);
        shape.appendInput(inputBatching[position], factors);
      } else if (isSplittable) {
        factors = builder.addFactor(size, FactorKind::Reduction);
        if (!factors.empty() && builder.getRule().accumulators.empty()) {
          builder.getRule().accumulators.push_back(0);
        }
      } else {
        factors = builder.addReplicated(size);
      }
      builder.appendOperand(indices, dim, factors);
      shape.appendUpdate(updateDim, factors);
    }
    return true;
  }

  /// Dimensions of the operand and the windows of the updates.
  static bool addWindowDims(ScatterOp scatter, RuleBuilder &builder,
                            ScatterShape &shape) {
    ScatterDimensionNumbersAttr dims = scatter.getScatterDimensionNumbers();
    ArrayRef<int64_t> windowDims = dims.getUpdateWindowDims();
    size_t nextWindow = 0;
    for (int64_t dim = 0; dim < builder.getOperandRank(0); ++dim) {
      if (llvm::is_contained(dims.getInputBatchingDims(), dim)) {
        continue;
      }
      int64_t size = builder.getOperandSize(0, dim);
      int64_t updateDim = -1, window = 1;
      if (!llvm::is_contained(dims.getInsertedWindowDims(), dim)) {
        if (nextWindow >= windowDims.size()) {
          return false;
        }
        updateDim = windowDims[nextWindow++];
        window = builder.getOperandSize(shape.numInputs + 1, updateDim);
      }
      bool isWhole = window == size;
      DimFactors factors = isWhole || isScattered(scatter, dim)
                               ? builder.addParallel(size)
                               : builder.addReplicated(size);
      shape.appendInput(dim, factors);
      if (updateDim >= 0 && isWhole) {
        shape.appendUpdate(updateDim, factors);
      }
    }
    return true;
  }

  /// Whether updates are one element wide along `dim` of the operand and placed
  /// by an index.
  static bool isScattered(ScatterOp scatter, int64_t dim) {
    ScatterDimensionNumbersAttr dims = scatter.getScatterDimensionNumbers();
    if (!llvm::is_contained(dims.getScatterDimsToOperandDims(), dim)) {
      return false;
    }
    if (llvm::is_contained(dims.getInsertedWindowDims(), dim)) {
      return true;
    }
    int64_t window = 0;
    for (int64_t other = 0; other < dim; ++other) {
      window += !llvm::is_contained(dims.getInsertedWindowDims(), other) &&
                !llvm::is_contained(dims.getInputBatchingDims(), other);
    }
    ArrayRef<int64_t> windowDims = dims.getUpdateWindowDims();
    auto updates = getTensorType(scatter.getUpdates().front());
    return window < static_cast<int64_t>(windowDims.size()) &&
           windowDims[window] < updates.getRank() &&
           updates.getDimSize(windowDims[window]) == 1;
  }
};

} // namespace

void stablehlo::attachScatterRules(MLIRContext &context) {
  ScatterOp::attachInterface<ScatterRule>(context);
}
