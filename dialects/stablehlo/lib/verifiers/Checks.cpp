//===- Checks.cpp - What the verifiers of the operations share ------------===//

#include "Checks.h"

namespace mlir::stablehlo::verifiers {

LogicalResult verifyDim(Operation *op, StringRef name, int64_t dim,
                        int64_t rank) {
  if (dim < 0 || dim >= rank) {
    return op->emitOpError()
           << name << " " << dim << " is not in [0, " << rank << ")";
  }
  return success();
}

LogicalResult verifyDims(Operation *op, StringRef name, ArrayRef<int64_t> dims,
                         int64_t rank) {
  llvm::SmallDenseSet<int64_t, 8> seen;
  for (int64_t dim : dims) {
    if (verifyDim(op, name, dim, rank).failed()) {
      return failure();
    }
    if (!seen.insert(dim).second) {
      return op->emitOpError() << name << " " << dim << " appears twice";
    }
  }
  return success();
}

LogicalResult verifySortedDims(Operation *op, StringRef name,
                               ArrayRef<int64_t> dims, int64_t rank) {
  if (verifyDims(op, name, dims, rank).failed()) {
    return failure();
  }
  if (!llvm::is_sorted(dims)) {
    return op->emitOpError()
           << name << " entries [" << dims << "] must be in ascending order";
  }
  return success();
}

LogicalResult verifyCount(Operation *op, StringRef name, int64_t count,
                          int64_t expected) {
  if (count != expected) {
    return op->emitOpError()
           << name << " must number " << expected << ", but got " << count;
  }
  return success();
}

LogicalResult verifySize(Operation *op, StringRef name, int64_t size,
                         int64_t expected) {
  if (!ShapedType::isDynamic(size) && !ShapedType::isDynamic(expected) &&
      size != expected) {
    return op->emitOpError()
           << name << " must be " << expected << ", but got " << size;
  }
  return success();
}

LogicalResult verifyShape(Operation *op, StringRef name,
                          ArrayRef<int64_t> shape, ArrayRef<int64_t> expected) {
  if (shape.size() != expected.size()) {
    return op->emitOpError() << name << " must have rank " << expected.size()
                             << ", but got " << shape.size();
  }
  for (auto [dim, sizes] : llvm::enumerate(llvm::zip_equal(shape, expected))) {
    auto [size, wanted] = sizes;
    if (!ShapedType::isDynamic(size) && !ShapedType::isDynamic(wanted) &&
        size != wanted) {
      return op->emitOpError()
             << name << " must have size " << wanted << " in dimension " << dim
             << ", but got " << size;
    }
  }
  return success();
}

LogicalResult verifyElementType(Operation *op, StringRef name, Value value,
                                Value expected) {
  Type type = typeOf(value).getElementType();
  Type wanted = typeOf(expected).getElementType();
  if (type != wanted) {
    return op->emitOpError()
           << name << " must be of " << wanted << ", but got " << type;
  }
  return success();
}

LogicalResult verifyRank(Operation *op, StringRef name, Value value,
                         int64_t rank) {
  if (typeOf(value).getRank() != rank) {
    return op->emitOpError() << name << " must have rank " << rank
                             << ", but got " << typeOf(value).getRank();
  }
  return success();
}

LogicalResult verifyAtMost(Operation *op, StringRef name,
                           ArrayRef<int64_t> sizes, ArrayRef<int64_t> bounds) {
  for (auto [dim, pair] : llvm::enumerate(llvm::zip_equal(sizes, bounds))) {
    auto [size, bound] = pair;
    if (ShapedType::isDynamic(size)) {
      continue;
    }
    if (size < 0 || (!ShapedType::isDynamic(bound) && size > bound)) {
      return op->emitOpError() << name << " " << size << " of dimension " << dim
                               << " is not in [0, " << bound << "]";
    }
  }
  return success();
}

LogicalResult verifyReturn(Operation *op, StringRef name, Region &region,
                           int64_t numResults) {
  if (!region.hasOneBlock() || region.front().empty() ||
      !isa<ReturnOp>(region.front().back())) {
    return op->emitOpError()
           << name << " must be one block that ends in stablehlo.return";
  }
  int64_t count = getReturn(region)->getNumOperands();
  if (numResults >= 0 && count != numResults) {
    return op->emitOpError() << name << " must return " << numResults
                             << " values, but got " << count;
  }
  return success();
}

/// Shapes are compatible, elements equal or both floating-point numbers.
static bool isAccumulator(Type type, RankedTensorType expected) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && succeeded(verifyCompatibleShape(tensor, expected)) &&
         (tensor.getElementType() == expected.getElementType() ||
          (isa<FloatType>(tensor.getElementType()) &&
           isa<FloatType>(expected.getElementType())));
}

/// The sizes of `shape` are some of `dims`, in their order.
static bool isSubsequence(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims) {
  for (int64_t size : dims) {
    if (!shape.empty() &&
        (size == shape.front() || ShapedType::isDynamic(size) ||
         ShapedType::isDynamic(shape.front()))) {
      shape = shape.drop_front();
    }
  }
  return shape.empty();
}

LogicalResult verifyReducer(Operation *op, StringRef name, Region &region,
                            ArrayRef<RankedTensorType> inputs,
                            ArrayRef<RankedTensorType> inits,
                            ArrayRef<int64_t> dims) {
  size_t count = inputs.size();
  if (verifyReturn(op, name, region, count).failed() ||
      verifyCount(op, (name + " arguments").str(), region.getNumArguments(),
                  2 * count)
          .failed()) {
    return failure();
  }
  for (size_t index = 0; index < count; ++index) {
    Type type = getReturn(region)->getOperand(index).getType();
    auto accumulator = dyn_cast<RankedTensorType>(type);
    if (!accumulator ||
        failed(verifyCompatibleShape(accumulator, Type(inits[index])))) {
      return op->emitOpError() << name << " must return a tensor of the shape "
                               << "of " << inits[index] << ", but got " << type;
    }
    for (size_t number : {index, index + count}) {
      Type argument = region.getArgument(number).getType();
      if (!isAccumulator(argument, accumulator)) {
        return op->emitOpError()
               << name << " returns " << accumulator << ", but argument "
               << number << " is of " << argument;
      }
    }
    auto element =
        cast<RankedTensorType>(region.getArgument(index + count).getType());
    if (!hlo::isPromotableElementType(inits[index], accumulator) ||
        !hlo::isPromotableElementType(inputs[index], element)) {
      return op->emitOpError()
             << name << " accumulates " << accumulator.getElementType()
             << ", to which " << inits[index].getElementType() << " and "
             << inputs[index].getElementType() << " cannot be promoted";
    }
    if (!isSubsequence(element.getShape(), dims)) {
      return op->emitOpError()
             << name << " must take elements of what is left "
             << "of " << inputs[index] << ", but got " << element;
    }
  }
  return success();
}

LogicalResult verifyAccumulated(Operation *op, StringRef name, Value value,
                                Region &region, int64_t index) {
  Type type = typeOf(value).getElementType();
  Type expected = typeOf(getReturn(region)->getOperand(index)).getElementType();
  if (!hlo::isCompatibleElementTypeForHloTypeInference(type, expected)) {
    return op->emitOpError() << name << " must be of " << expected
                             << ", which is accumulated, but got " << type;
  }
  return success();
}

LogicalResult verifyReturnsPred(Operation *op, StringRef name, Region &region) {
  if (verifyReturn(op, name, region, 1).failed()) {
    return failure();
  }
  Type type = getReturn(region)->getOperand(0).getType();
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || tensor.getRank() != 0 ||
      !tensor.getElementType().isInteger(1)) {
    return op->emitOpError()
           << name << " must return tensor<i1>, but got " << type;
  }
  return success();
}

LogicalResult verifyType(Operation *op, StringRef name, Type actual,
                         Type expected) {
  if (!hlo::isCompatibleForHloTypeInference(expected, actual)) {
    return op->emitOpError()
           << name << " must be of " << expected << ", but got " << actual;
  }
  return success();
}

LogicalResult verifyShapeOperand(Operation *op, Value sizes,
                                 RankedTensorType result) {
  if (verifySize(op, "number of sizes", typeOf(sizes).getDimSize(0),
                 result.getRank())
          .failed()) {
    return failure();
  }
  SmallVector<int64_t> shape;
  if (failed(hlo::matchInts(sizes, shape))) {
    return success();
  }
  if (llvm::any_of(shape, [](int64_t size) { return size < 0; })) {
    return op->emitOpError() << "sizes [" << shape << "] must not be negative";
  }
  return verifyType(op, "result", result,
                    RankedTensorType::get(shape, result.getElementType()));
}

LogicalResult verifyPrecisions(Operation *op, std::optional<ArrayAttr> config) {
  if (config && config->size() > 2) {
    return op->emitOpError() << "takes a precision for each of 2 operands, but "
                                "got "
                             << config->size();
  }
  return success();
}

/// Lists of one entry per dimension; `least` is the least that is allowed.
static LogicalResult verifyList(Operation *op, StringRef name,
                                std::optional<ArrayRef<int64_t>> list,
                                size_t rank, int64_t least) {
  if (!list || list->empty()) {
    return success();
  }
  if (verifyCount(op, name, list->size(), rank).failed()) {
    return failure();
  }
  for (int64_t entry : *list) {
    if (entry < least) {
      return op->emitOpError()
             << name << " must be at least " << least << ", but got " << entry;
    }
  }
  return success();
}

/// An entry of a list that is absent, or empty, where all are 1.
static int64_t getEntry(std::optional<ArrayRef<int64_t>> list, size_t index) {
  return list && !list->empty() ? (*list)[index] : 1;
}

FailureOr<SmallVector<WindowDim>>
getWindow(Operation *op, ArrayRef<int64_t> sizes,
          std::optional<ArrayRef<int64_t>> strides,
          std::optional<DenseIntElementsAttr> padding,
          std::optional<ArrayRef<int64_t>> baseDilations,
          std::optional<ArrayRef<int64_t>> windowDilations) {
  size_t rank = sizes.size();
  if (verifyList(op, "window strides", strides, rank, 1).failed() ||
      verifyList(op, "base dilations", baseDilations, rank, 1).failed() ||
      verifyList(op, "window dilations", windowDilations, rank, 1).failed()) {
    return failure();
  }
  if (padding && padding->empty()) {
    padding = std::nullopt;
  }
  if (padding && padding->getType().getShape() !=
                     ArrayRef<int64_t>({static_cast<int64_t>(rank), 2})) {
    return op->emitOpError() << "padding must be a tensor of " << rank
                             << " x 2, but got " << padding->getType();
  }
  SmallVector<WindowDim> window(rank);
  for (size_t dim = 0; dim < rank; ++dim) {
    window[dim].size = sizes[dim];
    window[dim].stride = getEntry(strides, dim);
    window[dim].baseDilation = getEntry(baseDilations, dim);
    window[dim].windowDilation = getEntry(windowDilations, dim);
  }
  if (padding) {
    auto values = llvm::to_vector(padding->getValues<APInt>());
    for (size_t dim = 0; dim < rank; ++dim) {
      window[dim].low = values[2 * dim].getSExtValue();
      window[dim].high = values[2 * dim + 1].getSExtValue();
    }
  }
  return window;
}

int64_t getNumPlaces(const WindowDim &window, int64_t size) {
  if (ShapedType::isDynamic(size) || ShapedType::isDynamic(window.size)) {
    return ShapedType::kDynamic;
  }
  // The product of two int64 fits; what does not fit into the result is no size
  // that a type could have.
  using Wide = __int128;
  auto dilate = [](Wide count, Wide dilation) {
    return count == 0 ? Wide(0) : (count - 1) * dilation + 1;
  };
  Wide padded = dilate(size, window.baseDilation) + window.low + window.high;
  Wide covered = dilate(window.size, window.windowDilation);
  if (padded <= 0 || covered > padded) {
    return 0;
  }
  Wide places = (padded - covered) / window.stride + 1;
  return places > std::numeric_limits<int64_t>::max()
             ? std::numeric_limits<int64_t>::max()
             : static_cast<int64_t>(places);
}

} // namespace mlir::stablehlo::verifiers
