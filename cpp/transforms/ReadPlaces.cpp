//===- ReadPlaces.cpp - Elements that are read and written ----------------===//

#include "cpp/transforms/ReadPlaces.h"

#include "cpp/analysis/MemoryOrder.h"
#include "cpp/transforms/SortedIndices.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

namespace {

/// The elements of an operand that a gather reads or a scatter writes: along
/// each dimension one, at an index, or all.
struct Places {
  ArrayRef<int64_t> operandBatching, indexBatching;
  /// Dimensions of the operand that indices are of, in their order.
  ArrayRef<int64_t> indexed;
  /// Dimensions of the operand that slices or updates do not have.
  ArrayRef<int64_t> left;
  /// Dimensions of slices or updates that are of windows.
  ArrayRef<int64_t> window;
  int64_t vector;
  Value indices;
  RankedTensorType operand, elements;
};

ArrayRef<int64_t> getShape(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

} // namespace

static Places getPlaces(stablehlo::GatherOp gather) {
  auto dims = gather.getDimensionNumbers();
  return {dims.getOperandBatchingDims(),
          dims.getStartIndicesBatchingDims(),
          dims.getStartIndexMap(),
          dims.getCollapsedSliceDims(),
          dims.getOffsetDims(),
          dims.getIndexVectorDim(),
          gather.getStartIndices(),
          cast<RankedTensorType>(gather.getOperand().getType()),
          cast<RankedTensorType>(gather.getType())};
}

static Places getPlaces(stablehlo::ScatterOp scatter) {
  auto dims = scatter.getScatterDimensionNumbers();
  return {dims.getInputBatchingDims(),
          dims.getScatterIndicesBatchingDims(),
          dims.getScatterDimsToOperandDims(),
          dims.getInsertedWindowDims(),
          dims.getUpdateWindowDims(),
          dims.getIndexVectorDim(),
          scatter.getScatterIndices(),
          cast<RankedTensorType>(scatter.getInputs()[0].getType()),
          cast<RankedTensorType>(scatter.getUpdates()[0].getType())};
}

/// What each dimension of slices or updates that is longer than 1 is of: a
/// window over a dimension of the operand, or, behind these, a batch.
static SmallVector<int64_t> getOrder(const Places &places) {
  SmallVector<int64_t> order;
  int64_t rank = places.operand.getRank(), window = -1, batch = 0;
  auto isNoWindow = [&](int64_t dim) {
    return llvm::is_contained(places.left, dim) ||
           llvm::is_contained(places.operandBatching, dim);
  };
  for (int64_t dim = 0; dim < places.elements.getRank(); ++dim) {
    bool isWindow = llvm::is_contained(places.window, dim);
    if (isWindow) {
      do {
        ++window;
      } while (window < rank && isNoWindow(window));
    }
    int64_t of = isWindow ? window : rank + batch++;
    if (places.elements.getDimSize(dim) > 1) {
      order.push_back(of);
    }
  }
  return order;
}

/// Whether each index is of a batch of its own: no two say the same place.
static bool isOnePerBatch(const Places &places) {
  ArrayRef<int64_t> shape = getShape(places.indices);
  for (int64_t dim = 0; dim < static_cast<int64_t>(shape.size()); ++dim) {
    if (shape[dim] > 1 && dim != places.vector &&
        !llvm::is_contained(places.indexBatching, dim)) {
      return false;
    }
  }
  return true;
}

/// The indices along a dimension of the operand; null if it has none, or they
/// are not there by themselves.
static Value getIndices(const Places &places, int64_t dim) {
  const auto *found = llvm::find(places.indexed, dim);
  if (found == places.indexed.end()) {
    return nullptr;
  }
  if (places.indexed.size() == 1) {
    return places.indices;
  }
  auto parts = places.indices.getDefiningOp<stablehlo::ConcatenateOp>();
  bool isOneEach =
      parts && static_cast<int64_t>(parts.getDimension()) == places.vector &&
      parts.getInputs().size() == places.indexed.size();
  return isOneEach ? parts.getInputs()[found - places.indexed.begin()]
                   : nullptr;
}

/// Whether a gather reads the elements that a scatter writes, in their order.
static bool areSame(const Places &read, const Places &written,
                    ArrayRef<int64_t> sliceSizes) {
  if (read.operandBatching != written.operandBatching ||
      read.indexBatching != written.indexBatching ||
      read.vector != written.vector || getOrder(read) != getOrder(written)) {
    return false;
  }
  for (int64_t dim = 0; dim < read.operand.getRank(); ++dim) {
    int64_t size = read.operand.getDimSize(dim);
    if (llvm::is_contained(read.operandBatching, dim) || size == 1) {
      continue;
    }
    bool isPoint = llvm::is_contained(written.left, dim);
    if (sliceSizes[dim] != (isPoint ? 1 : size)) {
      return false;
    }
    // All of a dimension has one place only.
    Value index = getIndices(written, dim);
    if (isPoint && (!index || getIndices(read, dim) != index)) {
      return false;
    }
  }
  return true;
}

static bool isReplacing(stablehlo::ScatterOp scatter) {
  Block &body = scatter.getUpdateComputation().front();
  return scatter.getInputs().size() == 1 &&
         body.getTerminator()->getOperand(0) == body.getArgument(1);
}

/// The value that has the same elements in the same order.
static Value stripOnes(Value value) {
  Value from = getReshaped(value);
  return from == value ? value : stripOnes(from);
}

Value getWritten(Value made, Value into) {
  auto scatter = made.getDefiningOp<stablehlo::ScatterOp>();
  if (scatter && isReplacing(scatter) && scatter.getInputs()[0] == into) {
    return stripOnes(scatter.getUpdates()[0]);
  }
  auto update = made.getDefiningOp<stablehlo::DynamicUpdateSliceOp>();
  return update && update.getOperand() == into ? stripOnes(update.getUpdate())
                                               : nullptr;
}

bool isReadWhereWritten(Value read, Value made) {
  read = stripOnes(read);
  if (auto scatter = made.getDefiningOp<stablehlo::ScatterOp>()) {
    auto gather = read.getDefiningOp<stablehlo::GatherOp>();
    return gather && gather.getOperand() == scatter.getInputs()[0] &&
           isOnePerBatch(getPlaces(gather)) &&
           isOnePerBatch(getPlaces(scatter)) &&
           areSame(getPlaces(gather), getPlaces(scatter),
                   gather.getSliceSizes());
  }
  auto update = made.getDefiningOp<stablehlo::DynamicUpdateSliceOp>();
  auto slice = read.getDefiningOp<stablehlo::DynamicSliceOp>();
  return update && slice && slice.getOperand() == update.getOperand() &&
         slice.getType() == update.getUpdate().getType() &&
         slice.getStartIndices() == update.getStartIndices();
}

Value getReread(stablehlo::GatherOp gather) {
  auto scatter = gather.getOperand().getDefiningOp<stablehlo::ScatterOp>();
  if (!scatter || !isReplacing(scatter) ||
      scatter.getUpdates()[0].getType() != gather.getType()) {
    return nullptr;
  }
  Places written = getPlaces(scatter);
  bool isOneEach = written.operandBatching.empty() &&
                   written.indexed.size() == 1 &&
                   written.left == written.indexed &&
                   areDistinct(written.indices,
                               written.operand.getDimSize(written.indexed[0]));
  return isOneEach &&
                 areSame(getPlaces(gather), written, gather.getSliceSizes())
             ? scatter.getUpdates()[0]
             : nullptr;
}

} // namespace mlir::alpa
