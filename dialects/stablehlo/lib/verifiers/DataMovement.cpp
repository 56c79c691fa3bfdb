//===- DataMovement.cpp - verifiers of shapes, slices, pads ---------------===//
//
// Labels (C1)... are the constraints of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "Quantization.h"

using namespace mlir;
using namespace mlir::stablehlo;
using namespace mlir::stablehlo::verifiers;

LogicalResult ConstantOp::verify() {
  RankedTensorType type = getType();
  auto quantized = dyn_cast<quant::QuantizedType>(type.getElementType());
  // Quantized elements are given as they are stored.
  Type expected = quantized ? type.clone(quantized.getStorageType()) : type;
  // (C1)
  if (getValue().getType() != expected) {
    return emitOpError() << "value must be of " << expected << ", but got "
                         << getValue().getType();
  }
  return success();
}

LogicalResult IotaOp::verify() {
  // (C1)
  return verifyDim(*this, "iota dimension", getIotaDimension(),
                   getType().getRank());
}

LogicalResult ReshapeOp::verify() {
  RankedTensorType in = typeOf(getOperand()), out = getType();
  // (C2)
  if (in.hasStaticShape() && out.hasStaticShape() &&
      verifySize(*this, "number of result elements", out.getNumElements(),
                 in.getNumElements())
          .failed()) {
    return failure();
  }
  // (C1), (C3)
  return verifyReshapedAxis(*this, in, out);
}

LogicalResult BitcastConvertOp::verify() {
  RankedTensorType in = typeOf(getOperand()), out = getType();
  // (C2)
  if (isa<ComplexType>(in.getElementType()) !=
      isa<ComplexType>(out.getElementType())) {
    return emitOpError() << "cannot take real elements as complex ones, but "
                         << "got " << in << " and " << out;
  }
  unsigned inBits = hlo::getBitWidth(in.getElementType());
  unsigned outBits = hlo::getBitWidth(out.getElementType());
  // (C1): the wider one lacks a last dimension of the ratio of the widths.
  SmallVector<int64_t> wide(inBits >= outBits ? in.getShape() : out.getShape());
  ArrayRef<int64_t> narrow = inBits >= outBits ? out.getShape() : in.getShape();
  unsigned most = std::max(inBits, outBits), least = std::min(inBits, outBits);
  if (most % least != 0) {
    return emitOpError() << "cannot take elements of " << inBits
                         << " bits as elements of " << outBits << " bits";
  }
  if (most != least) {
    wide.push_back(most / least);
  }
  return verifyShape(*this, "tensor of the narrower elements", narrow, wide);
}

LogicalResult TransposeOp::verify() {
  RankedTensorType in = typeOf(getOperand()), out = getType();
  // (C2)
  if (verifyCount(*this, "permutation entries", getPermutation().size(),
                  in.getRank())
          .failed() ||
      verifyDims(*this, "permutation entry", getPermutation(), in.getRank())
          .failed()) {
    return failure();
  }
  // (C3)
  SmallVector<int64_t> shape;
  for (int64_t dim : getPermutation()) {
    shape.push_back(in.getDimSize(dim));
  }
  if (verifyShape(*this, "result", out.getShape(), shape).failed()) {
    return failure();
  }
  // (C1), (C4)
  return verifyTransposedAxis(*this, in, out, getPermutation());
}

LogicalResult BroadcastOp::verify() {
  auto shape = llvm::to_vector(getBroadcastSizes());
  llvm::append_range(shape, typeOf(getOperand()).getShape());
  return verifyShape(*this, "result", getType().getShape(), shape);
}

LogicalResult BroadcastInDimOp::verify() {
  RankedTensorType in = typeOf(getOperand()), out = getType();
  ArrayRef<int64_t> dims = getBroadcastDimensions();
  bool isPerAxis = hlo::isQuantizedPerAxis(in.getElementType());
  // (C1) to (C4)
  if ((!isPerAxis && verifySameQuantization(*this, in, out).failed()) ||
      verifyCount(*this, "broadcast dimensions", dims.size(), in.getRank())
          .failed() ||
      verifyDims(*this, "broadcast dimension", dims, out.getRank()).failed()) {
    return failure();
  }
  // (C5)
  for (auto [i, dim] : llvm::enumerate(dims)) {
    if (in.getDimSize(i) != 1 &&
        verifySize(*this, "operand size", in.getDimSize(i), out.getDimSize(dim))
            .failed()) {
      return failure();
    }
  }
  // (C6)
  return verifyBroadcastAxis(*this, in, out, dims);
}

LogicalResult ConcatenateOp::verify() {
  // (C3)
  if (getInputs().empty()) {
    return emitOpError("needs at least one operand");
  }
  RankedTensorType first = typeOf(getInputs().front());
  int64_t dim = getDimension();
  // (C4)
  if (verifyDim(*this, "dimension", dim, first.getRank()).failed()) {
    return failure();
  }
  SmallVector<int64_t> shape(first.getShape());
  // Sizes from text may add up to more than an int64.
  uint64_t total = 0;
  bool isDynamic = false;
  for (auto [index, input] : llvm::enumerate(getInputs())) {
    RankedTensorType type = typeOf(input);
    // (C1)
    if (verifyElementType(*this, "operand " + std::to_string(index), input,
                          getInputs().front())
            .failed() ||
        verifyRank(*this, "operand " + std::to_string(index), input,
                   first.getRank())
            .failed()) {
      return failure();
    }
    // (C2)
    for (int64_t other = 0; other < first.getRank(); ++other) {
      int64_t size = type.getDimSize(other);
      if (other == dim || ShapedType::isDynamic(size)) {
        continue;
      }
      if (ShapedType::isDynamic(shape[other])) {
        shape[other] = size;
      } else if (size != shape[other]) {
        return emitOpError()
               << "operand " << index << " has size " << size
               << " in dimension " << other << ", operand 0 has "
               << shape[other] << "; only dimension " << dim << " may differ";
      }
    }
    isDynamic |= type.isDynamicDim(dim);
    total += static_cast<uint64_t>(type.getDimSize(dim));
  }
  shape[dim] = isDynamic ? ShapedType::kDynamic : static_cast<int64_t>(total);
  // (C5), (C6)
  if (verifyElementType(*this, "result", getResult(), getInputs().front())
          .failed()) {
    return failure();
  }
  return verifyShape(*this, "result", getType().getShape(), shape);
}

LogicalResult ReverseOp::verify() {
  // (C2), (C3)
  return verifyDims(*this, "dimension", getDimensions(), getType().getRank());
}

/// The size of a dimension, or what bounds it.
static int64_t getLargestSize(RankedTensorType type, int64_t dim) {
  ArrayRef<int64_t> bounds = hlo::encodingToBounds(type.getEncoding());
  return type.isDynamicDim(dim) && !bounds.empty() ? bounds[dim]
                                                   : type.getDimSize(dim);
}

LogicalResult SliceOp::verify() {
  RankedTensorType in = typeOf(getOperand()), out = getType();
  int64_t rank = in.getRank();
  // (C1), (C2)
  if (verifyElementType(*this, "result", getResult(), getOperand()).failed() ||
      verifyCount(*this, "start indices", getStartIndices().size(), rank)
          .failed() ||
      verifyCount(*this, "limit indices", getLimitIndices().size(), rank)
          .failed() ||
      verifyCount(*this, "strides", getStrides().size(), rank).failed() ||
      verifyCount(*this, "result dimensions", out.getRank(), rank).failed()) {
    return failure();
  }
  for (int64_t i = 0; i < rank; ++i) {
    int64_t start = getStartIndices()[i], limit = getLimitIndices()[i],
            step = getStrides()[i];
    int64_t most = getLargestSize(in, i);
    // (C3), (C4)
    if (start < 0 || limit < start || step < 1 ||
        (!ShapedType::isDynamic(most) && limit > most)) {
      return emitOpError() << "range " << start << ":" << limit << ":" << step
                           << " does not fit dimension " << i << " of " << in;
    }
    // (C5)
    int64_t expected = (limit - start) / step + ((limit - start) % step != 0);
    if (verifySize(*this, "result size", out.getDimSize(i), expected)
            .failed()) {
      return failure();
    }
  }
  return success();
}

LogicalResult PadOp::verify() {
  RankedTensorType in = typeOf(getOperand());
  int64_t rank = in.getRank();
  ArrayRef<int64_t> low = getEdgePaddingLow(), high = getEdgePaddingHigh(),
                    interior = getInteriorPadding();
  // (C1), (C2)
  if (verifyElementType(*this, "padding value", getPaddingValue(), getOperand())
          .failed() ||
      verifyElementType(*this, "result", getResult(), getOperand()).failed() ||
      verifyRank(*this, "padding value", getPaddingValue(), 0).failed() ||
      verifyCount(*this, "low paddings", low.size(), rank).failed() ||
      verifyCount(*this, "high paddings", high.size(), rank).failed() ||
      verifyCount(*this, "interior paddings", interior.size(), rank).failed()) {
    return failure();
  }
  SmallVector<int64_t> shape;
  for (int64_t dim = 0; dim < rank; ++dim) {
    // (C3)
    if (interior[dim] < 0) {
      return emitOpError() << "interior padding " << interior[dim]
                           << " of dimension " << dim << " is negative";
    }
    int64_t most = getLargestSize(in, dim);
    shape.push_back(ShapedType::kDynamic);
    if (ShapedType::isDynamic(most)) {
      continue;
    }
    // (C4)
    __int128 size = most;
    __int128 padded = size + low[dim] + high[dim] +
                      (size > 0 ? (size - 1) * interior[dim] : 0);
    if (padded < 0 || padded > std::numeric_limits<int64_t>::max()) {
      return emitOpError() << "padding " << low[dim] << ", " << high[dim]
                           << ", " << interior[dim]
                           << " leaves no size of dimension " << dim;
    }
    if (!in.isDynamicDim(dim)) {
      shape.back() = static_cast<int64_t>(padded);
    }
  }
  return verifyShape(*this, "result", getType().getShape(), shape);
}
