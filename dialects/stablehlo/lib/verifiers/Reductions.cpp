//===- Reductions.cpp - verifiers of reductions, windows, sort ------------===//
//
// Labels (C1)... are the constraints of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

using namespace mlir;
using namespace mlir::stablehlo;
using namespace mlir::stablehlo::verifiers;

/// Inputs of one shape, one scalar initial value and one result for each, and a
/// body on pairs of scalars.
static LogicalResult verifyFolding(Operation *op, ValueRange inputs,
                                   ValueRange inits, Region &body) {
  int64_t count = inputs.size();
  if (count == 0) {
    return op->emitOpError("needs at least one input");
  }
  if (verifyCount(op, "results", op->getNumResults(), count).failed() ||
      verifyCount(op, "initial values", inits.size(), count).failed() ||
      verifyScalarRegion(op, "the body", body, 2 * count, count).failed()) {
    return failure();
  }
  for (int64_t index = 0; index < count; ++index) {
    if (verifyShape(op, "input " + std::to_string(index),
                    typeOf(inputs[index]).getShape(),
                    typeOf(inputs.front()).getShape())
            .failed() ||
        verifyRank(op, "initial value", inits[index], 0).failed() ||
        verifyElementType(op, "initial value", inits[index], inputs[index])
            .failed()) {
      return failure();
    }
  }
  return success();
}

/// Every result has a shape.
static LogicalResult verifyResultShapes(Operation *op,
                                        ArrayRef<int64_t> shape) {
  for (Value result : op->getResults()) {
    if (verifyShape(op, "result", typeOf(result).getShape(), shape).failed()) {
      return failure();
    }
  }
  return success();
}

/// How many places the windows of an operation take along each dimension.
static FailureOr<SmallVector<int64_t>>
getPlaces(Operation *op, ArrayRef<int64_t> shape, ArrayRef<int64_t> sizes,
          std::optional<ArrayRef<int64_t>> strides,
          std::optional<DenseIntElementsAttr> padding,
          std::optional<ArrayRef<int64_t>> baseDilations = std::nullopt,
          std::optional<ArrayRef<int64_t>> windowDilations = std::nullopt) {
  if (verifyCount(op, "window dimensions", sizes.size(), shape.size())
          .failed()) {
    return failure();
  }
  for (int64_t size : sizes) {
    if (size < 1) {
      return op->emitOpError()
             << "window size must be at least 1, but got " << size;
    }
  }
  auto window =
      getWindow(op, sizes, strides, padding, baseDilations, windowDilations);
  if (failed(window)) {
    return failure();
  }
  SmallVector<int64_t> places;
  for (auto [dim, size] : llvm::zip_equal(*window, shape)) {
    places.push_back(getNumPlaces(dim, size));
  }
  return places;
}

LogicalResult ReduceOp::verify() {
  // (C1) to (C6)
  if (verifyFolding(*this, getInputs(), getInitValues(), getBody()).failed()) {
    return failure();
  }
  RankedTensorType type = typeOf(getInputs().front());
  if (verifyDims(*this, "dimension", getDimensions(), type.getRank())
          .failed()) {
    return failure();
  }
  SmallVector<int64_t> shape;
  for (int64_t dim = 0; dim < type.getRank(); ++dim) {
    if (!llvm::is_contained(getDimensions(), dim)) {
      shape.push_back(type.getDimSize(dim));
    }
  }
  // (C7)
  return verifyResultShapes(*this, shape);
}

LogicalResult ReduceWindowOp::verify() {
  // (C1) to (C3), (C13)
  if (verifyFolding(*this, getInputs(), getInitValues(), getBody()).failed()) {
    return failure();
  }
  // (C4) to (C12)
  auto places =
      getPlaces(*this, typeOf(getInputs().front()).getShape(),
                getWindowDimensions(), getWindowStrides(), getPadding(),
                getBaseDilations(), getWindowDilations());
  // (C14), (C15)
  return failed(places) ? failure() : verifyResultShapes(*this, *places);
}

LogicalResult SelectAndScatterOp::verify() {
  RankedTensorType type = typeOf(getOperand());
  // (C1), (C3), (C9), (C10)
  if (verifyElementType(*this, "source", getSource(), getOperand()).failed() ||
      verifyElementType(*this, "initial value", getInitValue(), getOperand())
          .failed() ||
      verifyRank(*this, "initial value", getInitValue(), 0).failed() ||
      verifyRank(*this, "source", getSource(), type.getRank()).failed() ||
      verifyScalarRegion(*this, "select", getSelect(), 2, 1).failed() ||
      verifyScalarRegion(*this, "scatter", getScatter(), 2, 1).failed() ||
      verifyShape(*this, "result", getType().getShape(), type.getShape())
          .failed()) {
    return failure();
  }
  SmallVector<int64_t> ones(type.getRank(), 1);
  // (C4) to (C8)
  auto places =
      getPlaces(*this, type.getShape(), getWindowDimensions().value_or(ones),
                getWindowStrides(), getPadding());
  if (failed(places)) {
    return failure();
  }
  // (C2)
  return verifyShape(*this, "source", typeOf(getSource()).getShape(), *places);
}

LogicalResult SortOp::verify() {
  int64_t count = getInputs().size();
  // (C1)
  if (count == 0) {
    return emitOpError("needs at least one input");
  }
  // (C2)
  if (getInputs().getTypes() != getResultTypes()) {
    return emitOpError() << "inputs are of (" << getInputs().getTypes()
                         << "), results of (" << getResultTypes() << ")";
  }
  RankedTensorType type = typeOf(getInputs().front());
  // (C3)
  for (auto [index, input] : llvm::enumerate(getInputs())) {
    if (verifyShape(*this, "input " + std::to_string(index),
                    typeOf(input).getShape(), type.getShape())
            .failed()) {
      return failure();
    }
  }
  // (C4)
  auto dim = static_cast<int64_t>(getDimension());
  if (dim < -type.getRank() || dim >= type.getRank()) {
    return emitOpError() << "dimension " << dim << " is not in ["
                         << -type.getRank() << ", " << type.getRank() << ")";
  }
  // (C5)
  return verifyScalarRegion(*this, "the comparator", getComparator(), 2 * count,
                            1);
}

LogicalResult MapOp::verify() {
  // (C2)
  if (getInputs().empty()) {
    return emitOpError("needs at least one input");
  }
  // (C1)
  for (auto [index, input] : llvm::enumerate(getInputs())) {
    if (verifyShape(*this, "input " + std::to_string(index),
                    typeOf(input).getShape(), getType().getShape())
            .failed()) {
      return failure();
    }
  }
  // (C3)
  if (verifyCount(*this, "dimensions", getDimensions().size(),
                  getType().getRank())
          .failed()) {
    return failure();
  }
  for (auto [index, dim] : llvm::enumerate(getDimensions())) {
    if (dim != static_cast<int64_t>(index)) {
      return emitOpError() << "dimensions must be 0 to "
                           << getType().getRank() - 1 << " in order, but got ["
                           << getDimensions() << "]";
    }
  }
  // (C4)
  return verifyScalarRegion(*this, "the computation", getComputation(),
                            getInputs().size(), 1);
}
