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

LogicalResult verifyScalarRegion(Operation *op, StringRef name, Region &region,
                                 int64_t numArguments, int64_t numResults) {
  if (verifyReturn(op, name, region, numResults).failed()) {
    return failure();
  }
  if (region.getNumArguments() != numArguments) {
    return op->emitOpError()
           << name << " must take " << numArguments << " arguments, but got "
           << region.getNumArguments();
  }
  auto types = llvm::concat<const Type>(
      llvm::to_vector(region.getArgumentTypes()),
      llvm::to_vector(getReturn(region)->getOperandTypes()));
  for (Type type : types) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    if (!tensor || tensor.getRank() != 0) {
      return op->emitOpError()
             << name << " must work on 0-dimensional tensors, but got " << type;
    }
  }
  return success();
}

/// Lists of one entry per dimension; `least` is the least that is allowed.
static LogicalResult verifyList(Operation *op, StringRef name,
                                std::optional<ArrayRef<int64_t>> list,
                                size_t rank, int64_t least) {
  if (!list) {
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
  if (padding && padding->getType().getShape() !=
                     ArrayRef<int64_t>({static_cast<int64_t>(rank), 2})) {
    return op->emitOpError() << "padding must be a tensor of " << rank
                             << " x 2, but got " << padding->getType();
  }
  SmallVector<WindowDim> window(rank);
  for (size_t dim = 0; dim < rank; ++dim) {
    window[dim].size = sizes[dim];
    window[dim].stride = strides ? (*strides)[dim] : 1;
    window[dim].baseDilation = baseDilations ? (*baseDilations)[dim] : 1;
    window[dim].windowDilation = windowDilations ? (*windowDilations)[dim] : 1;
  }
  if (padding) {
    auto values = llvm::to_vector(padding->getValues<int64_t>());
    for (size_t dim = 0; dim < rank; ++dim) {
      window[dim].low = values[2 * dim];
      window[dim].high = values[2 * dim + 1];
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
