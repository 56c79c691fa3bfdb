//===- Contraction.cpp - Rules of products of tensors ---------------------===//
//
// dot_general and convolution.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/Products.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::FactorKind;
using alpa::LocalContext;
using alpa::ShardingRule;

namespace {

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

} // namespace

void stablehlo::attachContractionRules(MLIRContext &context) {
  DotGeneralOp::attachInterface<DotGeneralRule>(context);
  ConvolutionOp::attachInterface<ConvolutionRule>(context);
}
