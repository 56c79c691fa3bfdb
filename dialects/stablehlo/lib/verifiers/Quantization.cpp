//===- Quantization.cpp - verifiers of quantized elements -----------------===//
//
// Labels (C1)... are the constraints of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "Quantization.h"

using namespace mlir;
using namespace mlir::stablehlo;
using namespace mlir::stablehlo::verifiers;

using quant::QuantizedType;
using quant::UniformQuantizedPerAxisType;
using quant::UniformQuantizedType;

/// The element of a tensor as a quantized one, or null.
static QuantizedType quantizedOf(Type type) {
  return dyn_cast<QuantizedType>(getElementTypeOrSelf(type));
}

static UniformQuantizedPerAxisType perAxisOf(Type type) {
  return dyn_cast<UniformQuantizedPerAxisType>(getElementTypeOrSelf(type));
}

bool verifiers::isAnyQuantized(TypeRange types) {
  return llvm::any_of(types, quantizedOf);
}

/// All of some types give the same part of a quantized type.
template <typename GetPart>
static LogicalResult verifySamePart(Operation *op, StringRef name,
                                    ArrayRef<QuantizedType> types,
                                    GetPart getPart) {
  for (QuantizedType type : types) {
    if (getPart(type) != getPart(types.front())) {
      return op->emitOpError()
             << "quantized operands and results must have one " << name
             << " type, but got " << types.front() << " and " << type;
    }
  }
  return success();
}

static Type getStorage(QuantizedType type) { return type.getStorageType(); }
static Type getExpressed(QuantizedType type) { return type.getExpressedType(); }

LogicalResult AddOp::verify() {
  Type lhs = getLhs().getType(), rhs = getRhs().getType(), out = getType();
  if (!isAnyQuantized({lhs, rhs, out})) {
    return failure(
        verifyElementType(*this, "rhs", getRhs(), getLhs()).failed() ||
        verifyElementType(*this, "result", getResult(), getLhs()).failed());
  }
  SmallVector<QuantizedType> types = {quantizedOf(lhs), quantizedOf(rhs),
                                      quantizedOf(out)};
  // (C2)
  if (!llvm::all_of(types, [](QuantizedType type) { return !!type; })) {
    return emitOpError("quantizes some of its operands and its result, but not "
                       "all");
  }
  // (C3), (C4)
  if (verifySamePart(*this, "storage", types, getStorage).failed() ||
      verifySamePart(*this, "expressed", types, getExpressed).failed()) {
    return failure();
  }
  // (C5) to (C7)
  UniformQuantizedPerAxisType result = perAxisOf(out);
  bool isPerAxis = perAxisOf(lhs) || perAxisOf(rhs);
  if (isPerAxis != !!result) {
    return emitOpError() << "result must be quantized per axis if an operand "
                            "is, and only then, but got "
                         << out;
  }
  for (Type type : {lhs, rhs}) {
    UniformQuantizedPerAxisType operand = perAxisOf(type);
    if (operand &&
        operand.getQuantizedDimension() != result.getQuantizedDimension()) {
      return emitOpError() << "operand is quantized along dimension "
                           << operand.getQuantizedDimension()
                           << ", the result along "
                           << result.getQuantizedDimension();
    }
  }
  return success();
}

LogicalResult UniformQuantizeOp::verify() {
  Type element = typeOf(getOperand()).getElementType();
  QuantizedType operand = quantizedOf(element);
  Type expressed = operand ? operand.getExpressedType() : element;
  QuantizedType result = quantizedOf(getType());
  // (C2)
  if (result.getExpressedType() != expressed) {
    return emitOpError() << "result must express " << expressed << ", but got "
                         << result.getExpressedType();
  }
  return success();
}

LogicalResult UniformDequantizeOp::verify() {
  QuantizedType operand = quantizedOf(getOperand().getType());
  // (C1), (C2)
  return verifyType(*this, "result", getType(),
                    typeOf(getOperand()).clone(operand.getExpressedType()));
}

LogicalResult verifiers::verifySameQuantization(Operation *op, Type lhs,
                                                Type rhs) {
  auto left = dyn_cast<UniformQuantizedType>(getElementTypeOrSelf(lhs));
  auto right = dyn_cast<UniformQuantizedType>(getElementTypeOrSelf(rhs));
  UniformQuantizedPerAxisType leftAxis = perAxisOf(lhs);
  UniformQuantizedPerAxisType rightAxis = perAxisOf(rhs);
  bool differ = (left && right && left != right) ||
                (leftAxis && rightAxis &&
                 (leftAxis.getScales() != rightAxis.getScales() ||
                  leftAxis.getZeroPoints() != rightAxis.getZeroPoints()));
  if (differ) {
    return op->emitOpError() << "scales and zero points must be the same, but "
                             << "got " << lhs << " and " << rhs;
  }
  return success();
}

LogicalResult verifiers::verifyReshapedAxis(Operation *op, RankedTensorType in,
                                            RankedTensorType out) {
  UniformQuantizedPerAxisType from = perAxisOf(in), to = perAxisOf(out);
  if (verifySameQuantization(op, in, out).failed()) {
    return failure();
  }
  if (!from || !to) {
    return success();
  }
  int64_t fromDim = from.getQuantizedDimension();
  int64_t toDim = to.getQuantizedDimension();
  if (verifySize(op, "size of the quantized dimension", out.getDimSize(toDim),
                 in.getDimSize(fromDim))
          .failed()) {
    return failure();
  }
  if (!in.hasStaticShape() || !out.hasStaticShape()) {
    return success();
  }
  return verifySize(
      op, "number of elements before the quantized dimension",
      ShapedType::getNumElements(out.getShape().take_front(toDim)),
      ShapedType::getNumElements(in.getShape().take_front(fromDim)));
}

LogicalResult verifiers::verifyTransposedAxis(Operation *op, Type in, Type out,
                                              ArrayRef<int64_t> permutation) {
  UniformQuantizedPerAxisType from = perAxisOf(in), to = perAxisOf(out);
  if (verifySameQuantization(op, in, out).failed()) {
    return failure();
  }
  if (from && to &&
      permutation[to.getQuantizedDimension()] != from.getQuantizedDimension()) {
    return op->emitOpError()
           << "operand is quantized along dimension "
           << from.getQuantizedDimension() << ", the result along "
           << permutation[to.getQuantizedDimension()] << " of the operand";
  }
  return success();
}

LogicalResult verifiers::verifyBroadcastAxis(Operation *op, RankedTensorType in,
                                             RankedTensorType out,
                                             ArrayRef<int64_t> dims) {
  UniformQuantizedPerAxisType from = perAxisOf(in), to = perAxisOf(out);
  if (!to) {
    return success();
  }
  if (!from) {
    return op->emitOpError() << "result is quantized per axis, the operand not";
  }
  int64_t dim = from.getQuantizedDimension();
  if (to.getQuantizedDimension() != dims[dim]) {
    return op->emitOpError() << "result is quantized along dimension "
                             << to.getQuantizedDimension() << ", the operand's "
                             << "goes to " << dims[dim];
  }
  if (in.getDimSize(dim) != 1) {
    return success();
  }
  bool isSplat = llvm::all_of(to.getScales(),
                              [&](double scale) {
                                return scale == from.getScales().front();
                              }) &&
                 llvm::all_of(to.getZeroPoints(), [&](int64_t point) {
                   return point == from.getZeroPoints().front();
                 });
  if (!isSplat) {
    return op->emitOpError() << "result must have the operand's one scale and "
                                "zero point everywhere, but got "
                             << out;
  }
  return success();
}

LogicalResult verifiers::verifyProductQuantization(Operation *op, Type lhs,
                                                   Type rhs, Type result) {
  QuantizedType left = quantizedOf(lhs), right = quantizedOf(rhs),
                out = quantizedOf(result);
  if (!right || !left != !out) {
    return op->emitOpError("needs a quantized rhs, and lhs and result that are "
                           "both quantized or both not");
  }
  if (!left) {
    Type type = getElementTypeOrSelf(lhs);
    if (type != right.getExpressedType() ||
        type != getElementTypeOrSelf(result)) {
      return op->emitOpError()
             << "lhs and result must be of what rhs expresses, "
             << right.getExpressedType() << ", but got " << type << " and "
             << getElementTypeOrSelf(result);
    }
    return success();
  }
  if (verifySamePart(op, "storage", {left, right}, getStorage).failed() ||
      verifySamePart(op, "expressed", {left, right, out}, getExpressed)
          .failed()) {
    return failure();
  }
  if (!perAxisOf(rhs) && perAxisOf(result)) {
    return op->emitOpError("result is quantized per axis, rhs not");
  }
  return success();
}

LogicalResult verifiers::verifyDotQuantization(DotGeneralOp op) {
  Type rhs = op.getRhs().getType();
  QuantizedType type = quantizedOf(rhs);
  SmallVector<int64_t> zeroPoints;
  if (UniformQuantizedPerAxisType perAxis = perAxisOf(rhs)) {
    zeroPoints.assign(perAxis.getZeroPoints().begin(),
                      perAxis.getZeroPoints().end());
    int64_t dim = perAxis.getQuantizedDimension();
    // (C16)
    if (llvm::is_contained(
            op.getDotDimensionNumbers().getRhsContractingDimensions(), dim)) {
      return op.emitOpError() << "rhs must not be quantized along dimension "
                              << dim << ", which is contracted";
    }
  } else if (auto perTensor = dyn_cast_or_null<UniformQuantizedType>(type)) {
    zeroPoints.push_back(perTensor.getZeroPoint());
  }
  // (C15)
  for (int64_t point : zeroPoints) {
    if (point != 0) {
      return op.emitOpError()
             << "zero points of rhs must be 0, but got " << point;
    }
  }
  // (C14), (C17) to (C20)
  return verifyProductQuantization(op, op.getLhs().getType(), rhs,
                                   op.getType());
}

LogicalResult
verifiers::verifyConvolutionQuantization(Operation *op, Type lhs, Type rhs,
                                         Type result,
                                         ConvDimensionNumbersAttr dims) {
  std::pair<Type, int64_t> axes[] = {
      {rhs, dims.getKernelOutputFeatureDimension()},
      {result, dims.getOutputFeatureDimension()}};
  // (C29), (C30)
  for (auto [type, dim] : axes) {
    UniformQuantizedPerAxisType perAxis = perAxisOf(type);
    if (perAxis && perAxis.getQuantizedDimension() != dim) {
      return op->emitOpError()
             << type << " must be quantized along its output features, "
             << "dimension " << dim;
    }
  }
  // (C28), (C31) to (C34)
  return verifyProductQuantization(op, lhs, rhs, result);
}
