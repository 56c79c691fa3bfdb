//===- Convolution.cpp - verifiers of convolutions ------------------------===//
//
// Labels (C1)... are the constraints of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "Quantization.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace mlir::stablehlo;
using namespace mlir::stablehlo::verifiers;

/// The dimensions of one tensor: two named ones and the spatial ones.
static LogicalResult verifyNumbers(Operation *op, StringRef name, Value value,
                                   int64_t first, int64_t second,
                                   ArrayRef<int64_t> spatial) {
  int64_t rank = typeOf(value).getRank();
  SmallVector<int64_t> dims = {first, second};
  llvm::append_range(dims, spatial);
  return failure(
      verifyCount(op, (name + " dimensions").str(), dims.size(), rank)
          .failed() ||
      verifyDims(op, (name + " dimension").str(), dims, rank).failed());
}

/// `value` is a multiple of `count`, and both are positive.
static LogicalResult verifyGroups(Operation *op, StringRef name, int64_t value,
                                  int64_t count) {
  if (count < 1) {
    return op->emitOpError() << "groups must be at least 1, but got " << count;
  }
  if (!ShapedType::isDynamic(value) && value % count != 0) {
    return op->emitOpError() << name << " " << value << " does not divide into "
                             << count << " groups";
  }
  return success();
}

/// What a convolution says of its dimensions and groups.
template <typename OpT> static LogicalResult verifyDimensions(OpT op) {
  ConvDimensionNumbersAttr dims = op.getDimensionNumbers();
  int64_t rank = typeOf(op.getLhs()).getRank();
  return failure(
      verifyRank(op, "rhs", op.getRhs(), rank).failed() ||
      verifyRank(op, "result", op.getResult(), rank).failed() ||
      verifyNumbers(op, "lhs", op.getLhs(), dims.getInputBatchDimension(),
                    dims.getInputFeatureDimension(),
                    dims.getInputSpatialDimensions())
          .failed() ||
      verifyNumbers(op, "rhs", op.getRhs(),
                    dims.getKernelInputFeatureDimension(),
                    dims.getKernelOutputFeatureDimension(),
                    dims.getKernelSpatialDimensions())
          .failed() ||
      verifyNumbers(
          op, "result", op.getResult(), dims.getOutputBatchDimension(),
          dims.getOutputFeatureDimension(), dims.getOutputSpatialDimensions())
          .failed());
}

template <typename OpT> static LogicalResult verifyGroupCounts(OpT op) {
  RankedTensorType lhs = typeOf(op.getLhs()), rhs = typeOf(op.getRhs());
  ConvDimensionNumbersAttr dims = op.getDimensionNumbers();
  int64_t groups = op.getFeatureGroupCount();
  int64_t batchGroups = op.getBatchGroupCount();
  int64_t batch = lhs.getDimSize(dims.getInputBatchDimension());
  int64_t features = lhs.getDimSize(dims.getInputFeatureDimension());
  int64_t outFeatures = rhs.getDimSize(dims.getKernelOutputFeatureDimension());
  if (verifyGroups(op, "lhs features", features, groups).failed() ||
      verifyGroups(op, "lhs batch", batch, batchGroups).failed() ||
      verifyGroups(op, "rhs output features", outFeatures, groups).failed() ||
      verifyGroups(op, "rhs output features", outFeatures, batchGroups)
          .failed()) {
    return failure();
  }
  if (groups != 1 && batchGroups != 1) {
    return op.emitOpError() << "either feature groups or batch groups must be "
                               "1, but got "
                            << groups << " and " << batchGroups;
  }
  return ShapedType::isDynamic(features)
             ? success()
             : verifySize(op, "rhs input features",
                          rhs.getDimSize(dims.getKernelInputFeatureDimension()),
                          features / groups);
}

template <typename OpT> static LogicalResult verifyElements(OpT op) {
  Type lhs = op.getLhs().getType(), rhs = op.getRhs().getType(),
       result = op.getType();
  if (isAnyQuantized({lhs, rhs, result})) {
    return verifyConvolutionQuantization(op, lhs, rhs, result,
                                         op.getDimensionNumbers());
  }
  return verifyElementType(op, "rhs", op.getRhs(), op.getLhs());
}

/// The sizes of the result, where the window has `padding`.
template <typename OpT>
static LogicalResult verifyPlaces(OpT op,
                                  std::optional<DenseIntElementsAttr> padding) {
  RankedTensorType lhs = typeOf(op.getLhs()), rhs = typeOf(op.getRhs());
  ConvDimensionNumbersAttr dims = op.getDimensionNumbers();
  SmallVector<int64_t> sizes;
  for (int64_t dim : dims.getKernelSpatialDimensions()) {
    sizes.push_back(rhs.getDimSize(dim));
  }
  auto window = getWindow(op, sizes, op.getWindowStrides(), padding,
                          op.getLhsDilation(), op.getRhsDilation());
  if (failed(window)) {
    return failure();
  }
  if (auto reversal = op.getWindowReversal();
      reversal && !reversal->empty() &&
      verifyCount(op, "window reversals", reversal->size(), sizes.size())
          .failed()) {
    return failure();
  }
  int64_t batch = lhs.getDimSize(dims.getInputBatchDimension());
  SmallVector<int64_t> shape(lhs.getRank());
  shape[dims.getOutputBatchDimension()] =
      ShapedType::isDynamic(batch)
          ? batch
          : batch / static_cast<int64_t>(op.getBatchGroupCount());
  shape[dims.getOutputFeatureDimension()] =
      rhs.getDimSize(dims.getKernelOutputFeatureDimension());
  for (auto [index, dim] : llvm::enumerate(dims.getOutputSpatialDimensions())) {
    int64_t size = lhs.getDimSize(dims.getInputSpatialDimensions()[index]);
    shape[dim] = getNumPlaces((*window)[index], size);
  }
  return verifyShape(op, "result", op.getType().getShape(), shape);
}

LogicalResult ConvolutionOp::verify() {
  // (C1), (C12), (C13), (C17) to (C20), then (C10), (C11), (C14) to (C16),
  // (C21) to (C23), then (C24), then (C27) to (C34)
  if (verifyDimensions(*this).failed() || verifyGroupCounts(*this).failed() ||
      verifyPrecisions(*this, getPrecisionConfig()).failed() ||
      verifyElements(*this).failed()) {
    return failure();
  }
  // (C2) to (C9), (C25), (C26)
  return verifyPlaces(*this, getPadding());
}

LogicalResult DynamicConvOp::verify() {
  if (verifyDimensions(*this).failed() || verifyGroupCounts(*this).failed() ||
      verifyPrecisions(*this, getPrecisionConfig()).failed() ||
      verifyElements(*this).failed()) {
    return failure();
  }
  int64_t count = typeOf(getLhs()).getRank() - 2;
  if (verifyShape(*this, "padding", typeOf(getPadding()).getShape(), {count, 2})
          .failed()) {
    return failure();
  }
  DenseIntElementsAttr padding;
  if (!matchPattern(getPadding(), m_Constant(&padding))) {
    return success();
  }
  return verifyPlaces(*this, padding);
}
