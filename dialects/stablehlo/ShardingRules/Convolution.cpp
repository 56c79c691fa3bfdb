//===- Convolution.cpp - Rule of convolution ------------------------------===//
//
// Batch and features are loops like those of any product. A spatial dimension
// is split where blocks of the input lie under blocks of the outputs, or, in
// the gradient of a kernel, under blocks of the taps: each device fetches the
// rows that its windows reach beyond its block.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/Convolution.h"
#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/Halo.h"
#include "dialects/stablehlo/ShardingRules/Products.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::Exchange;
using alpa::LocalContext;
using alpa::ShardingRule;

namespace {

/// Whether the taps run backwards along a spatial dimension.
bool isReversed(ConvolutionOp convolution, int64_t number) {
  std::optional<ArrayRef<bool>> reversal = convolution.getWindowReversal();
  return reversal && number < static_cast<int64_t>(reversal->size()) &&
         (*reversal)[number];
}

/// The window along a spatial dimension; none where nothing is known of it.
std::optional<Window> getWindow(ConvolutionOp convolution, int64_t number) {
  ConvDimensionNumbersAttr dims = convolution.getDimensionNumbers();
  auto getSize = [](Value value, int64_t dim) {
    return cast<RankedTensorType>(value.getType()).getDimSize(dim);
  };
  std::optional<Padding> padding = getPadding(convolution.getPadding(), number);
  if (!padding) {
    return std::nullopt;
  }
  Window window{
      getSize(convolution.getLhs(), dims.getInputSpatialDimensions()[number]),
      getSize(convolution.getRhs(), dims.getKernelSpatialDimensions()[number]),
      getSize(convolution.getResult(),
              dims.getOutputSpatialDimensions()[number])};
  window.stride = getSizeAt(convolution.getWindowStrides(), number);
  window.lowPadding = padding->first;
  window.baseDilation = getSizeAt(convolution.getLhsDilation(), number);
  window.windowDilation = getSizeAt(convolution.getRhsDilation(), number);
  return window;
}

/// Whether outputs may be shares of a sum over the taps of a dimension. Taps
/// that run backwards do not lie over the rows that they take.
bool canSplitTaps(ConvolutionOp convolution, int64_t number) {
  return isSummable(convolution.getResult().getType()) &&
         !isReversed(convolution, number);
}

/// The spatial dimensions along which the operator is split.
SmallVector<SplitDim> getSplitDims(ConvolutionOp convolution,
                                   const ShardingRule &rule,
                                   function_ref<int64_t(unsigned)> getShards) {
  ArrayRef<int64_t> inputDims =
      convolution.getDimensionNumbers().getInputSpatialDimensions();
  SmallVector<SplitDim> found;
  for (auto [number, dim] : llvm::enumerate(inputDims)) {
    const DimFactors &factors = rule.operands[0][dim];
    if (factors.empty() || getShards(factors.front()) == 1) {
      continue;
    }
    std::optional<SplitWindow> split = SplitWindow::find(
        *getWindow(convolution, number), canSplitTaps(convolution, number));
    found.push_back({static_cast<int64_t>(number),
                     *split,
                     {dim, factors.front(), split->getHalo()}});
  }
  return found;
}

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

    addSpatial(builder, convolution);
    double taps = static_cast<double>(
        builder.getOperandSize(1, dims.getKernelInputFeatureDimension()));
    for (int64_t dim : dims.getKernelSpatialDimensions()) {
      taps *= static_cast<double>(builder.getOperandSize(1, dim));
    }
    builder.getRule().flops = 2 * getNumElements(op->getResult(0)) * taps;
    addBilinear(builder, op);
    return builder.finish();
  }

  SmallVector<Exchange> getExchanges(Operation *op, const ShardingRule &rule,
                                     unsigned factor,
                                     ArrayRef<int64_t> factorShards) const {
    SmallVector<SplitDim> dims =
        getSplitDims(cast<ConvolutionOp>(op), rule,
                     [&](unsigned each) { return factorShards[each]; });
    return getHaloExchanges(rule, 0, op->getOperand(0).getType(),
                            getInputs(dims), factor, factorShards);
  }

  /// before: y = convolution(x, k) pad = [low, high]
  /// after:  l, h = rows of the blocks beside that of the device
  ///         y = convolution(concatenate(l, x, h), k) pad = what holes and taps
  ///             in the middle of the whole leave
  FailureOr<SmallVector<Value>> localize(Operation *op,
                                         LocalContext &context) const {
    auto global = cast<ConvolutionOp>(op);
    SmallVector<SplitDim> dims =
        getSplitDims(global, context.getRule(), [&](unsigned factor) {
          return context.getNumShards(factor);
        });
    Value input = fetchHalo(context, context.getOperands()[0], getInputs(dims),
                            /*filling=*/{}, op->getLoc());
    SmallVector<Value> results = alpa::cloneLocal(op, context);
    auto local = cast<ConvolutionOp>(results.front().getDefiningOp());
    local.getLhsMutable().assign(input);
    if (!dims.empty()) {
      local.setPaddingAttr(getLocalPadding(
          context, global.getPadding(),
          global.getDimensionNumbers().getInputSpatialDimensions().size(),
          dims));
    }
    setLocalGroups(global, local, context);
    return results;
  }

private:
  static void addSpatial(RuleBuilder &builder, ConvolutionOp convolution) {
    ConvDimensionNumbersAttr dims = convolution.getDimensionNumbers();
    for (auto [number, inputDim, kernelDim, outputDim] :
         llvm::enumerate(dims.getInputSpatialDimensions(),
                         dims.getKernelSpatialDimensions(),
                         dims.getOutputSpatialDimensions())) {
      std::optional<Window> window =
          getWindow(convolution, static_cast<int64_t>(number));
      if (!window) {
        continue;
      }
      WindowFactors factors =
          addWindow(builder, *window,
                    canSplitTaps(convolution, static_cast<int64_t>(number)));
      builder.appendOperand(0, inputDim, factors.input);
      builder.appendOperand(1, kernelDim, factors.taps);
      builder.appendResult(0, outputDim, factors.outputs);
    }
  }

  static void setLocalGroups(ConvolutionOp global, ConvolutionOp local,
                             LocalContext &context) {
    // The group is the major factor of the output features.
    auto groups = static_cast<int64_t>(global.getFeatureGroupCount() *
                                       global.getBatchGroupCount());
    const DimFactors &features =
        context.getRule().results[0][global.getDimensionNumbers()
                                         .getOutputFeatureDimension()];
    if (groups == 1 || features.empty() ||
        context.getRule().factors[features.front()].size != groups) {
      return;
    }
    int64_t localGroups = context.getLocalSize(features.front());
    if (global.getFeatureGroupCount() > 1) {
      local.setFeatureGroupCount(localGroups);
    } else {
      local.setBatchGroupCount(localGroups);
    }
  }
};

} // namespace

ConvolutionOp stablehlo::writeBatchGroupsOut(OpBuilder &builder,
                                             ConvolutionOp op) {
  auto groups = static_cast<int64_t>(op.getBatchGroupCount());
  int64_t batch = op.getDimensionNumbers().getInputBatchDimension();
  int64_t feature = op.getDimensionNumbers().getInputFeatureDimension();
  Location loc = op.getLoc();
  Value input = op.getLhs();
  auto type = cast<RankedTensorType>(input.getType());
  auto reshape = [&](ArrayRef<int64_t> shape) {
    input = ReshapeOp::create(builder, loc, type.clone(shape), input);
  };

  // Groups, which lie before the batch, go before the features.
  SmallVector<int64_t> grouped(type.getShape()), joined(type.getShape());
  grouped[batch] /= groups;
  joined[batch] /= groups;
  joined[feature] *= groups;
  grouped.insert(grouped.begin() + batch, groups);
  SmallVector<int64_t> order, moved;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (dim == feature) {
      order.push_back(batch);
    }
    order.push_back(dim < batch ? dim : dim + 1);
  }
  for (int64_t dim : order) {
    moved.push_back(grouped[dim]);
  }
  reshape(grouped);
  input = TransposeOp::create(builder, loc, type.clone(moved), input,
                              builder.getDenseI64ArrayAttr(order));
  reshape(joined);

  auto made = cast<ConvolutionOp>(builder.clone(*op));
  made.getLhsMutable().assign(input);
  made.setBatchGroupCount(1);
  made.setFeatureGroupCount(groups);
  return made;
}

void stablehlo::attachConvolutionRules(MLIRContext &context) {
  ConvolutionOp::attachInterface<ConvolutionRule>(context);
}
