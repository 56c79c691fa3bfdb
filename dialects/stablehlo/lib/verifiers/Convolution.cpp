//===- Convolution.cpp - verifier of the convolution ----------------------===//
//
// Labels (C1)... are the constraints of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

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

LogicalResult ConvolutionOp::verify() {
  RankedTensorType lhs = typeOf(getLhs()), rhs = typeOf(getRhs());
  ConvDimensionNumbersAttr dims = getDimensionNumbers();
  ArrayRef<int64_t> lhsSpatial = dims.getInputSpatialDimensions();
  ArrayRef<int64_t> rhsSpatial = dims.getKernelSpatialDimensions();
  ArrayRef<int64_t> outSpatial = dims.getOutputSpatialDimensions();
  // (C1), (C12), (C13), (C17), (C18), (C19), (C20)
  if (verifyRank(*this, "rhs", getRhs(), lhs.getRank()).failed() ||
      verifyRank(*this, "result", getResult(), lhs.getRank()).failed() ||
      verifyNumbers(*this, "lhs", getLhs(), dims.getInputBatchDimension(),
                    dims.getInputFeatureDimension(), lhsSpatial)
          .failed() ||
      verifyNumbers(*this, "rhs", getRhs(),
                    dims.getKernelInputFeatureDimension(),
                    dims.getKernelOutputFeatureDimension(), rhsSpatial)
          .failed() ||
      verifyNumbers(*this, "result", getResult(),
                    dims.getOutputBatchDimension(),
                    dims.getOutputFeatureDimension(), outSpatial)
          .failed()) {
    return failure();
  }
  int64_t groups = getFeatureGroupCount(), batchGroups = getBatchGroupCount();
  int64_t batch = lhs.getDimSize(dims.getInputBatchDimension());
  int64_t features = lhs.getDimSize(dims.getInputFeatureDimension());
  int64_t outFeatures = rhs.getDimSize(dims.getKernelOutputFeatureDimension());
  // (C10), (C11), (C15), (C16), (C21) to (C23)
  if (verifyGroups(*this, "lhs features", features, groups).failed() ||
      verifyGroups(*this, "lhs batch", batch, batchGroups).failed() ||
      verifyGroups(*this, "rhs output features", outFeatures, groups)
          .failed() ||
      verifyGroups(*this, "rhs output features", outFeatures, batchGroups)
          .failed()) {
    return failure();
  }
  if (groups != 1 && batchGroups != 1) {
    return emitOpError() << "either feature groups or batch groups must be 1, "
                            "but got "
                         << groups << " and " << batchGroups;
  }
  // (C14)
  if (!ShapedType::isDynamic(features) &&
      verifySize(*this, "rhs input features",
                 rhs.getDimSize(dims.getKernelInputFeatureDimension()),
                 features / groups)
          .failed()) {
    return failure();
  }
  SmallVector<int64_t> sizes;
  for (int64_t dim : rhsSpatial) {
    sizes.push_back(rhs.getDimSize(dim));
  }
  // (C2) to (C9)
  auto window = getWindow(*this, sizes, getWindowStrides(), getPadding(),
                          getLhsDilation(), getRhsDilation());
  if (failed(window)) {
    return failure();
  }
  if (auto reversal = getWindowReversal();
      reversal &&
      verifyCount(*this, "window reversals", reversal->size(), sizes.size())
          .failed()) {
    return failure();
  }
  // (C25) to (C27)
  SmallVector<int64_t> shape(lhs.getRank());
  shape[dims.getOutputBatchDimension()] =
      ShapedType::isDynamic(batch) ? batch : batch / batchGroups;
  shape[dims.getOutputFeatureDimension()] = outFeatures;
  for (auto [index, dim] : llvm::enumerate(outSpatial)) {
    shape[dim] =
        getNumPlaces((*window)[index], lhs.getDimSize(lhsSpatial[index]));
  }
  return verifyShape(*this, "result", getType().getShape(), shape);
}
