//===- Indexing.cpp - verifiers of dynamic slices, gather, scatter --------===//
//
// Labels (C1)... are the constraints of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

using namespace mlir;
using namespace mlir::stablehlo;
using namespace mlir::stablehlo::verifiers;

/// One scalar integer per dimension, all of one type.
static LogicalResult verifyStarts(Operation *op, ValueRange starts,
                                  int64_t rank) {
  if (verifyCount(op, "start indices", starts.size(), rank).failed()) {
    return failure();
  }
  for (Value start : starts) {
    RankedTensorType type = typeOf(start);
    if (type.getRank() != 0 || !type.getElementType().isInteger()) {
      return op->emitOpError()
             << "start indices must be 0-dimensional integers, but got "
             << type;
    }
    if (type != starts.front().getType()) {
      return op->emitOpError() << "start indices must be of one type, but got "
                               << starts.front().getType() << " and " << type;
    }
  }
  return success();
}

LogicalResult DynamicSliceOp::verify() {
  RankedTensorType in = typeOf(getOperand());
  // (C1) to (C5)
  if (verifyElementType(*this, "result", getResult(), getOperand()).failed() ||
      verifyStarts(*this, getStartIndices(), in.getRank()).failed() ||
      verifyCount(*this, "slice sizes", getSliceSizes().size(), in.getRank())
          .failed() ||
      verifyAtMost(*this, "slice size", getSliceSizes(), in.getShape())
          .failed()) {
    return failure();
  }
  // (C6)
  return verifyShape(*this, "result", getType().getShape(), getSliceSizes());
}

LogicalResult DynamicUpdateSliceOp::verify() {
  RankedTensorType in = typeOf(getOperand()), update = typeOf(getUpdate());
  // (C1) to (C6)
  if (verifyElementType(*this, "result", getResult(), getOperand()).failed() ||
      verifyShape(*this, "result", getType().getShape(), in.getShape())
          .failed() ||
      verifyElementType(*this, "update", getUpdate(), getOperand()).failed() ||
      verifyRank(*this, "update", getUpdate(), in.getRank()).failed() ||
      verifyStarts(*this, getStartIndices(), in.getRank()).failed()) {
    return failure();
  }
  return verifyAtMost(*this, "size of the update", update.getShape(),
                      in.getShape());
}

namespace {

/// What gather and scatter say alike: windows of an operand, at indices.
struct IndexedWindows {
  StringRef windowName;    // dimensions of the windows in result or updates
  StringRef collapsedName; // dimensions of the operand that windows lack
  ArrayRef<int64_t> windowDims;
  ArrayRef<int64_t> collapsedDims;
  ArrayRef<int64_t> operandBatchingDims;
  ArrayRef<int64_t> indicesBatchingDims;
  ArrayRef<int64_t> indexMap;
  int64_t indexVectorDim;
};

} // namespace

/// The sizes of the indices, without those of an index vector.
static SmallVector<int64_t> getBatchShape(RankedTensorType indices,
                                          int64_t vectorDim) {
  SmallVector<int64_t> shape(indices.getShape());
  if (vectorDim < indices.getRank()) {
    shape.erase(shape.begin() + vectorDim);
  }
  return shape;
}

/// `windowed` is the type that holds the windows.
static LogicalResult verifyWindows(Operation *op, const IndexedWindows &dims,
                                   RankedTensorType operand,
                                   RankedTensorType indices,
                                   RankedTensorType windowed) {
  int64_t rank = operand.getRank();
  auto absent = llvm::to_vector(llvm::concat<const int64_t>(
      dims.collapsedDims, dims.operandBatchingDims));
  auto indexed = llvm::to_vector(
      llvm::concat<const int64_t>(dims.indexMap, dims.operandBatchingDims));
  if (verifyCount(op, "operand dimensions", rank,
                  dims.windowDims.size() + absent.size())
          .failed() ||
      verifyDim(op, "index vector dimension", dims.indexVectorDim,
                indices.getRank() + 1)
          .failed() ||
      verifySortedDims(op, dims.windowName, dims.windowDims, windowed.getRank())
          .failed() ||
      verifySortedDims(op, dims.collapsedName, dims.collapsedDims, rank)
          .failed() ||
      verifySortedDims(op, "batching dimension of the operand",
                       dims.operandBatchingDims, rank)
          .failed() ||
      verifyDims(op, "collapsed or batching dimension", absent, rank)
          .failed() ||
      verifyDims(op, "indexed or batching dimension", indexed, rank).failed() ||
      verifyDims(op, "batching dimension of the indices",
                 dims.indicesBatchingDims, indices.getRank())
          .failed() ||
      verifyCount(op, "batching dimensions of the indices",
                  dims.indicesBatchingDims.size(),
                  dims.operandBatchingDims.size())
          .failed()) {
    return failure();
  }
  int64_t vectorSize = dims.indexVectorDim < indices.getRank()
                           ? indices.getDimSize(dims.indexVectorDim)
                           : 1;
  if (verifySize(op, "number of indexed dimensions", dims.indexMap.size(),
                 vectorSize)
          .failed()) {
    return failure();
  }
  if (llvm::is_contained(dims.indicesBatchingDims, dims.indexVectorDim)) {
    return op->emitOpError() << "index vector dimension " << dims.indexVectorDim
                             << " is a batching dimension of the indices";
  }
  for (auto [dim, other] :
       llvm::zip_equal(dims.operandBatchingDims, dims.indicesBatchingDims)) {
    if (verifySize(op, "size of a batching dimension of the indices",
                   indices.getDimSize(other), operand.getDimSize(dim))
            .failed()) {
      return failure();
    }
  }
  return success();
}

/// Puts the sizes of windows and of indices where the result or the updates
/// have them.
static SmallVector<int64_t> mergeSizes(ArrayRef<int64_t> windowDims,
                                       ArrayRef<int64_t> windowSizes,
                                       ArrayRef<int64_t> batchSizes) {
  SmallVector<int64_t> shape;
  size_t rank = windowSizes.size() + batchSizes.size();
  for (size_t dim = 0; dim < rank; ++dim) {
    bool isWindow = llvm::is_contained(windowDims, static_cast<int64_t>(dim));
    ArrayRef<int64_t> &from = isWindow ? windowSizes : batchSizes;
    // Window dimensions beyond the rank leave a list short: the caller's check
    // of the rank then fails.
    shape.push_back(from.empty() ? ShapedType::kDynamic : from.front());
    from = from.drop_front(from.empty() ? 0 : 1);
  }
  return shape;
}

static IndexedWindows getWindows(GatherDimensionNumbersAttr numbers) {
  return {"offset dimension",
          "collapsed dimension",
          numbers.getOffsetDims(),
          numbers.getCollapsedSliceDims(),
          numbers.getOperandBatchingDims(),
          numbers.getStartIndicesBatchingDims(),
          numbers.getStartIndexMap(),
          numbers.getIndexVectorDim()};
}

/// `sizes` are those of the slices, where they are known.
static LogicalResult verifyGather(Operation *op, Value operand, Value indices,
                                  Value result,
                                  GatherDimensionNumbersAttr numbers,
                                  ArrayRef<int64_t> sizes) {
  RankedTensorType from = typeOf(operand), to = typeOf(result);
  IndexedWindows dims = getWindows(numbers);
  if (verifyElementType(op, "result", result, operand).failed() ||
      verifyWindows(op, dims, from, typeOf(indices), to).failed() ||
      verifyCount(op, "slice sizes", sizes.size(), from.getRank()).failed() ||
      verifyAtMost(op, "slice size", sizes, from.getShape()).failed()) {
    return failure();
  }
  SmallVector<int64_t> window;
  for (auto [dim, size] : llvm::enumerate(sizes)) {
    if (!llvm::is_contained(dims.collapsedDims, dim) &&
        !llvm::is_contained(dims.operandBatchingDims, dim)) {
      window.push_back(size);
    } else if (size > 1) { // (C9), (C12)
      return op->emitOpError()
             << "slice size " << size << " of dimension " << dim
             << ", which the result lacks, must be at most 1";
    }
  }
  // (C22)
  return verifyShape(
      op, "result", to.getShape(),
      mergeSizes(dims.windowDims, window,
                 getBatchShape(typeOf(indices), dims.indexVectorDim)));
}

LogicalResult GatherOp::verify() {
  // (C1) to (C8), (C10), (C11), (C13) to (C21), (C23)
  return verifyGather(*this, getOperand(), getStartIndices(), getResult(),
                      getDimensionNumbers(), getSliceSizes());
}

LogicalResult DynamicGatherOp::verify() {
  SmallVector<int64_t> sizes;
  if (failed(hlo::matchInts(getSliceSizes(), sizes))) {
    sizes.assign(typeOf(getSliceSizes()).getDimSize(0), ShapedType::kDynamic);
  }
  return verifyGather(*this, getOperand(), getStartIndices(), getResult(),
                      getDimensionNumbers(), sizes);
}

/// Inputs and results of one shape, updates of another, and of one element.
static LogicalResult verifyScattered(ScatterOp op) {
  for (auto [input, update, result] :
       llvm::zip_equal(op.getInputs(), op.getUpdates(), op.getResults())) {
    if (verifyShape(op, "input", typeOf(input).getShape(),
                    typeOf(op.getInputs().front()).getShape())
            .failed() ||
        verifyShape(op, "update", typeOf(update).getShape(),
                    typeOf(op.getUpdates().front()).getShape())
            .failed() ||
        verifyShape(op, "result", typeOf(result).getShape(),
                    typeOf(input).getShape())
            .failed() ||
        verifyElementType(op, "update", update, input).failed()) {
      return failure();
    }
  }
  return success();
}

static LogicalResult verifyUpdateComputation(ScatterOp op) {
  SmallVector<RankedTensorType> updates, inits;
  for (auto [input, value] : llvm::zip_equal(op.getInputs(), op.getUpdates())) {
    updates.push_back(scalarOf(typeOf(value)));
    inits.push_back(scalarOf(typeOf(input)));
  }
  Region &region = op.getUpdateComputation();
  if (verifyReducer(op, "update computation", region, updates, inits)
          .failed()) {
    return failure();
  }
  for (auto [index, result] : llvm::enumerate(op.getResults())) {
    if (verifyAccumulated(op, "result", result, region, index).failed()) {
      return failure();
    }
  }
  return success();
}

LogicalResult ScatterOp::verify() {
  int64_t count = getInputs().size();
  // (C5)
  if (count == 0) {
    return emitOpError("needs at least one input");
  }
  // (C1), (C3), (C6), (C24)
  if (verifyCount(*this, "updates", getUpdates().size(), count).failed() ||
      verifyCount(*this, "results", getNumResults(), count).failed() ||
      verifyScattered(*this).failed()) {
    return failure();
  }
  RankedTensorType input = typeOf(getInputs().front());
  RankedTensorType update = typeOf(getUpdates().front());
  RankedTensorType indices = typeOf(getScatterIndices());
  ScatterDimensionNumbersAttr numbers = getScatterDimensionNumbers();
  IndexedWindows dims = {"update window dimension",
                         "inserted window dimension",
                         numbers.getUpdateWindowDims(),
                         numbers.getInsertedWindowDims(),
                         numbers.getInputBatchingDims(),
                         numbers.getScatterIndicesBatchingDims(),
                         numbers.getScatterDimsToOperandDims(),
                         numbers.getIndexVectorDim()};
  // (C2), (C7) to (C22)
  if (verifyWindows(*this, dims, input, indices, update).failed()) {
    return failure();
  }
  // (C4): windows are at most as large as the inputs.
  SmallVector<int64_t> window, bounds;
  for (int64_t dim : dims.windowDims) {
    window.push_back(update.getDimSize(dim));
  }
  for (int64_t dim = 0; dim < input.getRank(); ++dim) {
    if (!llvm::is_contained(dims.collapsedDims, dim) &&
        !llvm::is_contained(dims.operandBatchingDims, dim)) {
      bounds.push_back(input.getDimSize(dim));
    }
  }
  if (verifyAtMost(*this, "update size", window, bounds).failed() ||
      verifyShape(*this, "updates", update.getShape(),
                  mergeSizes(dims.windowDims, window,
                             getBatchShape(indices, dims.indexVectorDim)))
          .failed()) {
    return failure();
  }
  // (C23), (C25)
  return verifyUpdateComputation(*this);
}
