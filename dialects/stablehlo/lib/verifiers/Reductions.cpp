//===- Reductions.cpp - verifiers of reductions, windows, sort ------------===//
//
// Labels (C1)... are the constraints of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

using namespace mlir;
using namespace mlir::stablehlo;
using namespace mlir::stablehlo::verifiers;

static SmallVector<RankedTensorType> typesOf(ValueRange values) {
  return llvm::map_to_vector(values, typeOf);
}

/// Inputs of one shape, and one initial value and one result for each. What the
/// body gives has some of `dims`.
static LogicalResult verifyFolding(Operation *op, ValueRange inputs,
                                   ValueRange inits, Region &body,
                                   ArrayRef<int64_t> dims) {
  int64_t count = inputs.size();
  if (verifyCount(op, "results", op->getNumResults(), count).failed() ||
      verifyCount(op, "initial values", inits.size(), count).failed() ||
      verifyReducer(op, "the body", body, typesOf(inputs), typesOf(inits), dims)
          .failed()) {
    return failure();
  }
  for (int64_t index = 0; index < count; ++index) {
    if (verifyShape(op, "input " + std::to_string(index),
                    typeOf(inputs[index]).getShape(),
                    typeOf(inputs.front()).getShape())
            .failed()) {
      return failure();
    }
  }
  return success();
}

/// Every result has a shape, and the elements that the body accumulates.
static LogicalResult verifyFolded(Operation *op, ArrayRef<int64_t> shape,
                                  Region &body) {
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    if (verifyShape(op, "result", typeOf(result).getShape(), shape).failed() ||
        verifyAccumulated(op, "result", result, body, index).failed()) {
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
  if (getInputs().empty()) {
    return emitOpError("needs at least one input");
  }
  RankedTensorType type = typeOf(getInputs().front());
  // (C4), (C5)
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
  // (C1) to (C3), (C6)
  if (verifyFolding(*this, getInputs(), getInitValues(), getBody(), shape)
          .failed()) {
    return failure();
  }
  // (C7), (C8)
  return verifyFolded(*this, shape, getBody());
}

LogicalResult ReduceWindowOp::verify() {
  if (getInputs().empty()) {
    return emitOpError("needs at least one input");
  }
  // (C1) to (C3), (C13)
  if (verifyFolding(*this, getInputs(), getInitValues(), getBody(),
                    getWindowDimensions())
          .failed()) {
    return failure();
  }
  // (C4) to (C12)
  auto places =
      getPlaces(*this, typeOf(getInputs().front()).getShape(),
                getWindowDimensions(), getWindowStrides(), getPadding(),
                getBaseDilations(), getWindowDilations());
  // (C14) to (C16)
  return failed(places) ? failure() : verifyFolded(*this, *places, getBody());
}

/// A region that chooses between two elements of an operand.
static LogicalResult verifySelect(Operation *op, Region &select,
                                  RankedTensorType operand) {
  if (verifyReturnsPred(op, "select", select).failed() ||
      verifyCount(op, "select arguments", select.getNumArguments(), 2)
          .failed()) {
    return failure();
  }
  for (Type type : select.getArgumentTypes()) {
    auto argument = dyn_cast<RankedTensorType>(type);
    if (!argument || argument.getRank() != 0 ||
        !(argument.getElementType() == operand.getElementType() ||
          (isa<FloatType>(argument.getElementType()) &&
           isa<FloatType>(operand.getElementType())))) {
      return op->emitOpError() << "select must take " << scalarOf(operand)
                               << ", but got " << type;
    }
  }
  return success();
}

LogicalResult SelectAndScatterOp::verify() {
  RankedTensorType type = typeOf(getOperand());
  // (C9) to (C12)
  if (verifySelect(*this, getSelect(), type).failed() ||
      verifyReducer(*this, "scatter", getScatter(),
                    scalarOf(typeOf(getSource())), typeOf(getInitValue()))
          .failed() ||
      verifyAccumulated(*this, "result", getResult(), getScatter()).failed() ||
      verifyShape(*this, "result", getType().getShape(), type.getShape())
          .failed()) {
    return failure();
  }
  // (C4) to (C8)
  auto places = getPlaces(*this, type.getShape(),
                          getWindowDimensions().value_or(ArrayRef<int64_t>()),
                          getWindowStrides(), getPadding());
  if (failed(places)) {
    return failure();
  }
  // (C1), (C2)
  return verifyShape(*this, "source", typeOf(getSource()).getShape(), *places);
}

LogicalResult SortOp::verify() {
  size_t count = getInputs().size();
  // (C1)
  if (count == 0) {
    return emitOpError("needs at least one input");
  }
  // (C2), (C3)
  if (!hlo::isCompatibleForHloTypeInference(getInputs().getTypes(),
                                            getResultTypes())) {
    return emitOpError() << "inputs are of (" << getInputs().getTypes()
                         << "), results of (" << getResultTypes() << ")";
  }
  int64_t rank = typeOf(getInputs().front()).getRank();
  // (C4)
  auto dim = static_cast<int64_t>(getDimension());
  if (dim < -rank || dim >= rank) {
    return emitOpError() << "dimension " << dim << " is not in [" << -rank
                         << ", " << rank << ")";
  }
  // (C5)
  if (verifyReturnsPred(*this, "the comparator", getComparator()).failed() ||
      verifyCount(*this, "comparator arguments",
                  getComparator().getNumArguments(), 2 * count)
          .failed()) {
    return failure();
  }
  for (auto [index, type] :
       llvm::enumerate(getComparator().getArgumentTypes())) {
    RankedTensorType expected = scalarOf(typeOf(getInputs()[index / 2]));
    if (type != expected) {
      return emitOpError() << "argument " << index << " of the comparator must "
                           << "be of " << expected << ", but got " << type;
    }
  }
  return success();
}

LogicalResult MapOp::verify() {
  // (C2)
  if (getInputs().empty()) {
    return emitOpError("needs at least one input");
  }
  // (C3)
  int64_t rank = typeOf(getInputs().front()).getRank();
  if (!llvm::equal(getDimensions(), llvm::seq<int64_t>(0, rank))) {
    return emitOpError() << "dimensions must be 0 to " << rank - 1
                         << " in order, but got [" << getDimensions() << "]";
  }
  // (C4)
  if (verifyReturn(*this, "the computation", getComputation(), 1).failed() ||
      verifyCount(*this, "computation arguments",
                  getComputation().getNumArguments(), getInputs().size())
          .failed()) {
    return failure();
  }
  for (auto [type, input] :
       llvm::zip(getComputation().getArgumentTypes(), getInputs())) {
    if (type != scalarOf(typeOf(input))) {
      return emitOpError() << "the computation must take "
                           << scalarOf(typeOf(input)) << ", but got " << type;
    }
  }
  Type returned = getReturn(getComputation())->getOperand(0).getType();
  return verifyType(*this, "what the computation returns", returned,
                    scalarOf(getType()));
}
