//===- Dynamism.cpp - verifiers of sizes that are values ------------------===//
//
// Labels (C1)... are the constraints of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "Quantization.h"

using namespace mlir;
using namespace mlir::stablehlo;
using namespace mlir::stablehlo::verifiers;

LogicalResult GetDimensionSizeOp::verify() {
  // (C1)
  return verifyDim(*this, "dimension", getDimension(),
                   typeOf(getOperand()).getRank());
}

LogicalResult SetDimensionSizeOp::verify() {
  RankedTensorType type = typeOf(getOperand());
  auto dim = static_cast<int64_t>(getDimension());
  if (verifyRank(*this, "size", getSize(), 0).failed() ||
      verifyDim(*this, "dimension", dim, type.getRank()).failed()) {
    return failure();
  }
  SmallVector<int64_t> shape(type.getShape());
  SmallVector<int64_t> bounds(hlo::encodingToBounds(type.getEncoding()));
  bounds.resize(type.getRank(), ShapedType::kDynamic);
  if (!type.isDynamicDim(dim)) {
    bounds[dim] = type.getDimSize(dim);
  }
  shape[dim] = ShapedType::kDynamic;
  SmallVector<int64_t> size;
  if (succeeded(hlo::matchInts(getSize(), size)) &&
      size.front() == bounds[dim]) {
    shape[dim] = size.front();
    bounds[dim] = ShapedType::kDynamic;
  }
  bool isBounded = llvm::any_of(
      bounds, [](int64_t bound) { return !ShapedType::isDynamic(bound); });
  Attribute encoding =
      isBounded ? TypeExtensionsAttr::get(getContext(), bounds) : Attribute();
  return verifyType(
      *this, "result", getType(),
      RankedTensorType::get(shape, type.getElementType(), encoding));
}

LogicalResult DynamicIotaOp::verify() {
  // (C1), (C2)
  return failure(
      verifyDim(*this, "iota dimension", getIotaDimension(),
                getType().getRank())
          .failed() ||
      verifyShapeOperand(*this, getOutputShape(), getType()).failed());
}

/// Elements that are not quantized are the same.
static LogicalResult verifyKeepsElements(Operation *op) {
  Type in = op->getOperand(0).getType(), out = op->getResult(0).getType();
  if (isAnyQuantized({in, out})) {
    return success();
  }
  return verifyElementType(op, "result", op->getResult(0), op->getOperand(0));
}

LogicalResult DynamicReshapeOp::verify() {
  RankedTensorType in = typeOf(getOperand()), out = getType();
  // (C1), (C4)
  if (verifyKeepsElements(*this).failed() ||
      verifyShapeOperand(*this, getOutputShape(), out).failed()) {
    return failure();
  }
  SmallVector<int64_t> shape(out.getShape()), sizes;
  if (succeeded(hlo::matchInts(getOutputShape(), sizes))) {
    shape = sizes;
  }
  // (C2)
  if (in.hasStaticShape() && ShapedType::isStaticShape(shape) &&
      verifySize(*this, "number of result elements",
                 ShapedType::getNumElements(shape), in.getNumElements())
          .failed()) {
    return failure();
  }
  // (C1), (C3)
  return verifyReshapedAxis(*this, in, out);
}

/// No operand dimension is said to expand and not to expand, or twice.
static LogicalResult verifyExpansions(DynamicBroadcastInDimOp op) {
  SmallVector<int64_t> dims;
  for (auto list : {op.getKnownExpandingDimensions(),
                    op.getKnownNonexpandingDimensions()}) {
    if (list) {
      llvm::append_range(dims, *list);
    }
  }
  return verifyDims(op, "expanding or not expanding dimension", dims,
                    typeOf(op.getOperand()).getRank());
}

LogicalResult DynamicBroadcastInDimOp::verify() {
  RankedTensorType in = typeOf(getOperand()), out = getType();
  ArrayRef<int64_t> dims = getBroadcastDimensions();
  // (C1), (C2), (C4), (C5), (C7) to (C10)
  if (verifyKeepsElements(*this).failed() ||
      verifyCount(*this, "broadcast dimensions", dims.size(), in.getRank())
          .failed() ||
      verifyDims(*this, "broadcast dimension", dims, out.getRank()).failed() ||
      verifyShapeOperand(*this, getOutputDimensions(), out).failed() ||
      verifyExpansions(*this).failed()) {
    return failure();
  }
  SmallVector<int64_t> shape(out.getShape()), sizes;
  if (succeeded(hlo::matchInts(getOutputDimensions(), sizes))) {
    shape = sizes;
  }
  // (C5)
  for (auto [index, dim] : llvm::enumerate(dims)) {
    if (in.getDimSize(index) != 1 &&
        verifySize(*this, "operand size", in.getDimSize(index), shape[dim])
            .failed()) {
      return failure();
    }
  }
  // (C6)
  return verifyBroadcastAxis(*this, in, out, dims);
}

LogicalResult RealDynamicSliceOp::verify() {
  int64_t rank = typeOf(getOperand()).getRank();
  return failure(verifySize(*this, "number of indices",
                            typeOf(getStartIndices()).getDimSize(0), rank)
                     .failed() ||
                 verifyRank(*this, "result", getResult(), rank).failed());
}

LogicalResult DynamicPadOp::verify() {
  RankedTensorType in = typeOf(getOperand()), out = getType();
  // (C2)
  if (verifySize(*this, "number of paddings",
                 typeOf(getEdgePaddingLow()).getDimSize(0), in.getRank())
          .failed()) {
    return failure();
  }
  // (C3)
  SmallVector<int64_t> low, high, interior;
  if (failed(hlo::matchInts(getInteriorPadding(), interior))) {
    return success();
  }
  for (int64_t padding : interior) {
    if (padding < 0) {
      return emitOpError() << "interior padding " << padding << " is negative";
    }
  }
  if (failed(hlo::matchInts(getEdgePaddingLow(), low)) ||
      failed(hlo::matchInts(getEdgePaddingHigh(), high))) {
    return success();
  }
  // (C4)
  for (auto [dim, size] : llvm::enumerate(in.getShape())) {
    if (ShapedType::isDynamic(size) || out.isDynamicDim(dim)) {
      continue;
    }
    // Numbers from text may add up to more than an int64.
    __int128 padded = static_cast<__int128>(size) + low[dim] + high[dim];
    if (size > 0) {
      padded += static_cast<__int128>(size - 1) * interior[dim];
    }
    if (padded != out.getDimSize(dim)) {
      return emitOpError() << "result has size " << out.getDimSize(dim)
                           << " in dimension " << dim << ", which " << size
                           << " padded by " << low[dim] << ", " << high[dim]
                           << ", " << interior[dim] << " is not";
    }
  }
  return success();
}
