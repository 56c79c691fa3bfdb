//===- Contraction.cpp - Rules of products of tensors ---------------------===//
//
// dot_general, convolution and chlo.ragged_dot.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "stablehlo/dialect/ChloOps.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::FactorKind;
using alpa::LocalContext;
using alpa::ShardingRule;

namespace {

/// The loop over what is multiplied and added: split where the result can be
/// held as shares of a sum.
DimFactors addContracted(RuleBuilder &builder, Operation *op, int64_t size) {
  return builder.addFactor(size, isSummable(op->getResult(0).getType())
                                     ? FactorKind::Reduction
                                     : FactorKind::Replicated);
}

/// Products are linear in either operand, but not when an integer is widened
/// on the way: shares of an i8 wrap where their i32 product would not.
void addBilinear(RuleBuilder &builder, Operation *op) {
  Type result = getElementTypeOrSelf(op->getResult(0).getType());
  if (!isSummable(result)) {
    return;
  }
  for (unsigned i = 0; i < 2; ++i) {
    Type element = getElementTypeOrSelf(op->getOperand(i).getType());
    if (isSummable(element) &&
        (element == result || !isa<IntegerType>(element))) {
      builder.getRule().linearOperands.push_back({i});
    }
  }
}

double getSize(RuleBuilder &builder, ArrayRef<unsigned> factors) {
  double size = 1;
  for (unsigned factor : factors) {
    size *= static_cast<double>(builder.getRule().factors[factor].size);
  }
  return size;
}

struct DotGeneralRule : RuleModel<DotGeneralRule, DotGeneralOp> {
  ShardingRule getShardingRule(Operation *op) const {
    DotDimensionNumbersAttr dims =
        cast<DotGeneralOp>(op).getDotDimensionNumbers();
    ArrayRef<int64_t> lhsBatch = dims.getLhsBatchingDimensions();
    ArrayRef<int64_t> rhsBatch = dims.getRhsBatchingDimensions();
    ArrayRef<int64_t> lhsContracted = dims.getLhsContractingDimensions();
    ArrayRef<int64_t> rhsContracted = dims.getRhsContractingDimensions();
    RuleBuilder builder(op);
    if (lhsBatch.size() != rhsBatch.size() ||
        lhsContracted.size() != rhsContracted.size()) {
      builder.invalidate();
      return builder.finish();
    }

    int64_t resultDim = 0;
    for (auto [lhsDim, rhsDim] : llvm::zip_equal(lhsBatch, rhsBatch)) {
      DimFactors batch = builder.addParallel(builder.getOperandSize(0, lhsDim));
      builder.appendOperand(0, lhsDim, batch);
      builder.appendOperand(1, rhsDim, batch);
      builder.appendResult(0, resultDim++, batch);
    }
    auto addFree = [&](unsigned operand, ArrayRef<int64_t> batch,
                       ArrayRef<int64_t> contracted) {
      for (int64_t dim = 0; dim < builder.getOperandRank(operand); ++dim) {
        if (!llvm::is_contained(batch, dim) &&
            !llvm::is_contained(contracted, dim)) {
          builder.share(operand, dim, 0, resultDim++);
        }
      }
    };
    addFree(0, lhsBatch, lhsContracted);
    addFree(1, rhsBatch, rhsContracted);
    double contractedSize = 1;
    for (auto [lhsDim, rhsDim] :
         llvm::zip_equal(lhsContracted, rhsContracted)) {
      DimFactors contracted =
          addContracted(builder, op, builder.getOperandSize(0, lhsDim));
      builder.appendOperand(0, lhsDim, contracted);
      builder.appendOperand(1, rhsDim, contracted);
      contractedSize *= getSize(builder, contracted);
    }
    builder.getRule().flops =
        2 * getNumElements(op->getResult(0)) * contractedSize;
    addBilinear(builder, op);
    return builder.finish();
  }
};

/// With feature groups the input features are [group, input feature of the
/// group] and the output features [group, output feature of the group]; with
/// batch groups it is the batch of the input that is [group, batch]. Gradients
/// of convolutions are convolutions with other dimension numbers.
struct ConvolutionRule : RuleModel<ConvolutionRule, ConvolutionOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto convolution = cast<ConvolutionOp>(op);
    ConvDimensionNumbersAttr dims = convolution.getDimensionNumbers();
    auto featureGroups =
        static_cast<int64_t>(convolution.getFeatureGroupCount());
    auto batchGroups = static_cast<int64_t>(convolution.getBatchGroupCount());
    RuleBuilder builder(op);
    if (!builder.isUsable() || featureGroups < 1 || batchGroups < 1 ||
        (featureGroups > 1 && batchGroups > 1)) {
      builder.invalidate();
      return builder.finish();
    }

    // Sizes that do not divide are caught by `finish`.
    DimFactors group = builder.addParallel(featureGroups * batchGroups);
    DimFactors batch = builder.addParallel(
        builder.getResultSize(0, dims.getOutputBatchDimension()));
    DimFactors outputFeature = builder.addParallel(
        builder.getResultSize(0, dims.getOutputFeatureDimension()) /
        (featureGroups * batchGroups));
    DimFactors inputFeature = addContracted(
        builder, op,
        builder.getOperandSize(1, dims.getKernelInputFeatureDimension()));

    if (batchGroups > 1) {
      builder.appendOperand(0, dims.getInputBatchDimension(), group);
    }
    builder.appendOperand(0, dims.getInputBatchDimension(), batch);
    if (featureGroups > 1) {
      builder.appendOperand(0, dims.getInputFeatureDimension(), group);
    }
    builder.appendOperand(0, dims.getInputFeatureDimension(), inputFeature);
    builder.appendOperand(1, dims.getKernelInputFeatureDimension(),
                          inputFeature);
    builder.appendOperand(1, dims.getKernelOutputFeatureDimension(), group);
    builder.appendOperand(1, dims.getKernelOutputFeatureDimension(),
                          outputFeature);
    builder.appendResult(0, dims.getOutputBatchDimension(), batch);
    builder.appendResult(0, dims.getOutputFeatureDimension(), group);
    builder.appendResult(0, dims.getOutputFeatureDimension(), outputFeature);

    double kernelSize = getSize(builder, inputFeature);
    for (int64_t dim : dims.getKernelSpatialDimensions()) {
      kernelSize *= static_cast<double>(builder.getOperandSize(1, dim));
    }
    builder.getRule().flops = 2 * getNumElements(op->getResult(0)) * kernelSize;
    addBilinear(builder, op);
    return builder.finish();
  }

  FailureOr<SmallVector<Value>> localize(Operation *op,
                                         LocalContext &context) const {
    auto global = cast<ConvolutionOp>(op);
    SmallVector<Value> results = alpa::cloneLocal(op, context);
    auto local = cast<ConvolutionOp>(results.front().getDefiningOp());
    // The group is the major factor of the output features.
    auto groups = static_cast<int64_t>(global.getFeatureGroupCount() *
                                       global.getBatchGroupCount());
    const DimFactors &features =
        context.getRule().results[0][global.getDimensionNumbers()
                                         .getOutputFeatureDimension()];
    if (groups == 1 || features.empty() ||
        context.getRule().factors[features.front()].size != groups) {
      return results;
    }
    int64_t localGroups = context.getLocalSize(features.front());
    if (global.getFeatureGroupCount() > 1) {
      local.setFeatureGroupCount(localGroups);
    } else {
      local.setBatchGroupCount(localGroups);
    }
    return results;
  }
};

/// A product whose rows (or contracted or batch indices) come in groups of
/// different sizes. The grouped dimension and the groups stay whole; all others
/// are those of a `dot_general`.
struct RaggedDotRule : RuleModel<RaggedDotRule, chlo::RaggedDotOp> {
  ShardingRule getShardingRule(Operation *op) const {
    chlo::RaggedDotDimensionNumbersAttr dims =
        cast<chlo::RaggedDotOp>(op).getRaggedDotDimensionNumbers();
    ArrayRef<int64_t> lhsBatch = dims.getLhsBatchingDimensions();
    ArrayRef<int64_t> rhsBatch = dims.getRhsBatchingDimensions();
    ArrayRef<int64_t> lhsContracted = dims.getLhsContractingDimensions();
    ArrayRef<int64_t> rhsContracted = dims.getRhsContractingDimensions();
    ArrayRef<int64_t> ragged = dims.getLhsRaggedDimensions();
    ArrayRef<int64_t> groups = dims.getRhsGroupDimensions();
    RuleBuilder builder(op);
    if (lhsBatch.size() != rhsBatch.size() ||
        lhsContracted.size() != rhsContracted.size() || ragged.size() != 1) {
      builder.invalidate();
      return builder.finish();
    }
    auto isRagged = [&](int64_t dim) { return dim == ragged.front(); };

    // With a ragged contracted dimension the groups are the major dimension of
    // the result.
    int64_t resultDim = llvm::any_of(lhsContracted, isRagged) ? 1 : 0;
    for (auto [lhsDim, rhsDim] : llvm::zip_equal(lhsBatch, rhsBatch)) {
      int64_t size = builder.getOperandSize(0, lhsDim);
      DimFactors batch = isRagged(lhsDim) ? builder.addReplicated(size)
                                          : builder.addParallel(size);
      builder.appendOperand(0, lhsDim, batch);
      builder.appendOperand(1, rhsDim, batch);
      builder.appendResult(0, resultDim++, batch);
    }
    for (int64_t dim = 0; dim < builder.getOperandRank(0); ++dim) {
      if (llvm::is_contained(lhsBatch, dim) ||
          llvm::is_contained(lhsContracted, dim)) {
        continue;
      }
      if (isRagged(dim)) {
        ++resultDim;
      } else {
        builder.share(0, dim, 0, resultDim++);
      }
    }
    for (int64_t dim = 0; dim < builder.getOperandRank(1); ++dim) {
      if (!llvm::is_contained(rhsBatch, dim) &&
          !llvm::is_contained(rhsContracted, dim) &&
          !llvm::is_contained(groups, dim)) {
        builder.share(1, dim, 0, resultDim++);
      }
    }
    double contractedSize = 1;
    bool isRaggedContraction = false;
    for (auto [lhsDim, rhsDim] :
         llvm::zip_equal(lhsContracted, rhsContracted)) {
      int64_t size = builder.getOperandSize(0, lhsDim);
      DimFactors contracted = isRagged(lhsDim)
                                  ? builder.addReplicated(size)
                                  : addContracted(builder, op, size);
      builder.appendOperand(0, lhsDim, contracted);
      builder.appendOperand(1, rhsDim, contracted);
      contractedSize *= static_cast<double>(size);
      isRaggedContraction |= isRagged(lhsDim);
    }
    // A ragged contraction visits every contracted index once, in its group.
    double outputs = getNumElements(op->getResult(0));
    if (isRaggedContraction && builder.getResultRank(0) > 0) {
      outputs /= static_cast<double>(
          std::max<int64_t>(1, builder.getResultSize(0, 0)));
    }
    builder.getRule().flops = 2 * outputs * contractedSize;
    addBilinear(builder, op);
    return builder.finish();
  }
};

} // namespace

void stablehlo::attachContractionRules(MLIRContext &context) {
  DotGeneralOp::attachInterface<DotGeneralRule>(context);
  ConvolutionOp::attachInterface<ConvolutionRule>(context);
}

void stablehlo::attachChloContractionRules(MLIRContext &context) {
  chlo::RaggedDotOp::attachInterface<RaggedDotRule>(context);
}
