//===- LinearAlgebra.cpp - verifiers of products, FFT, solvers ------------===//
//
// Labels (C1)... are the constraints of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "Quantization.h"

using namespace mlir;
using namespace mlir::stablehlo;
using namespace mlir::stablehlo::verifiers;

LogicalResult DotOp::verify() {
  RankedTensorType lhs = typeOf(getLhs()), rhs = typeOf(getRhs());
  if (verifyPrecisions(*this, getPrecisionConfig()).failed()) {
    return failure();
  }
  if (lhs.getRank() < 1 || lhs.getRank() > 2 || rhs.getRank() < 1 ||
      rhs.getRank() > 2) {
    return emitOpError() << "operands must have rank 1 or 2, but got " << lhs
                         << " and " << rhs;
  }
  if (verifySize(*this, "rhs size", rhs.getDimSize(0),
                 lhs.getDimSize(lhs.getRank() - 1))
          .failed()) {
    return failure();
  }
  SmallVector<int64_t> shape(lhs.getShape().drop_back());
  llvm::append_range(shape, rhs.getShape().drop_front());
  return verifyShape(*this, "result", getType().getShape(), shape);
}

/// An algorithm says all that precisions could.
static LogicalResult verifyAlgorithm(DotGeneralOp op) {
  std::optional<ArrayAttr> config = op.getPrecisionConfig();
  if (!op.getAlgorithm() || !config) {
    return success();
  }
  for (PrecisionAttr precision : config->getAsRange<PrecisionAttr>()) {
    if (precision.getValue() != Precision::DEFAULT) {
      return op.emitOpError()
             << "has an algorithm, and the precision "
             << stringifyEnum(precision.getValue()) << " beside it";
    }
  }
  return success();
}

LogicalResult DotGeneralOp::verify() {
  // (C11), (C21)
  if (verifyPrecisions(*this, getPrecisionConfig()).failed() ||
      verifyAlgorithm(*this).failed()) {
    return failure();
  }
  RankedTensorType lhs = typeOf(getLhs()), rhs = typeOf(getRhs()),
                   out = getType();
  DotDimensionNumbersAttr dims = getDotDimensionNumbers();
  ArrayRef<int64_t> lhsBatch = dims.getLhsBatchingDimensions();
  ArrayRef<int64_t> rhsBatch = dims.getRhsBatchingDimensions();
  ArrayRef<int64_t> lhsContract = dims.getLhsContractingDimensions();
  ArrayRef<int64_t> rhsContract = dims.getRhsContractingDimensions();
  auto lhsDims =
      llvm::to_vector(llvm::concat<const int64_t>(lhsBatch, lhsContract));
  auto rhsDims =
      llvm::to_vector(llvm::concat<const int64_t>(rhsBatch, rhsContract));
  if (verifyCount(*this, "rhs batching dimensions", rhsBatch.size(),
                  lhsBatch.size())
          .failed() ||
      verifyCount(*this, "rhs contracting dimensions", rhsContract.size(),
                  lhsContract.size())
          .failed() ||
      verifyDims(*this, "lhs dimension", lhsDims, lhs.getRank()).failed() ||
      verifyDims(*this, "rhs dimension", rhsDims, rhs.getRank()).failed()) {
    return failure();
  }
  SmallVector<int64_t> shape;
  for (auto [l, r] : llvm::zip(lhsDims, rhsDims)) {
    if (verifySize(*this, "rhs size", rhs.getDimSize(r), lhs.getDimSize(l))
            .failed()) {
      return failure();
    }
  }
  for (int64_t dim : lhsBatch) {
    shape.push_back(lhs.getDimSize(dim));
  }
  for (auto [type, used] : {std::pair(lhs, lhsDims), std::pair(rhs, rhsDims)}) {
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      if (!llvm::is_contained(used, dim)) {
        shape.push_back(type.getDimSize(dim));
      }
    }
  }
  if (verifyCount(*this, "result dimensions", out.getRank(), shape.size())
          .failed()) {
    return failure();
  }
  for (auto [size, expected] : llvm::zip(out.getShape(), shape)) {
    if (verifySize(*this, "result size", size, expected).failed()) {
      return failure();
    }
  }
  // (C14) to (C20)
  return isAnyQuantized({lhs, rhs, out}) ? verifyDotQuantization(*this)
                                         : success();
}

LogicalResult FftOp::verify() {
  RankedTensorType in = typeOf(getOperand());
  int64_t count = getFftLength().size();
  // (C1), (C3)
  if (count < 1 || count > 3 || count > in.getRank()) {
    return emitOpError() << "transforms " << count << " dimensions of " << in
                         << ", between 1 and 3 of its dimensions are needed";
  }
  for (int64_t length : getFftLength()) {
    if (length < 0) {
      return emitOpError() << "length " << length << " is negative";
    }
  }
  FftType type = getFftType();
  // (C2)
  bool isReal = type == FftType::RFFT;
  Type element = in.getElementType();
  if (isa<ComplexType>(element) == isReal ||
      (isReal && !isa<Float32Type, Float64Type>(element))) {
    return emitOpError() << stringifyEnum(type) << " takes "
                         << (isReal ? "f32 or f64" : "complex numbers")
                         << ", but got " << element;
  }
  Type expected = isReal ? ComplexType::get(element)
                  : type == FftType::IRFFT
                      ? cast<ComplexType>(element).getElementType()
                      : element;
  if (getType().getElementType() != expected) {
    return emitOpError() << "result must be of " << expected << ", but got "
                         << getType().getElementType();
  }
  SmallVector<int64_t> operand(in.getShape()), result(in.getShape());
  ArrayRef<int64_t> lengths = getFftLength();
  auto tail = [&](SmallVector<int64_t> &shape) {
    return MutableArrayRef<int64_t>(shape).take_back(count);
  };
  // (C4), (C5): one half and the middle stand for a real transform's last
  // dimension.
  llvm::copy(lengths, tail(operand).begin());
  llvm::copy(lengths, tail(result).begin());
  auto halve = [](int64_t length) { return length == 0 ? 0 : length / 2 + 1; };
  if (type == FftType::IRFFT) {
    // Half of nothing is nothing, or the middle alone, as JAX has it.
    bool isMiddle = lengths.back() == 0 && in.getShape().back() == 1;
    operand.back() = isMiddle ? 1 : halve(lengths.back());
  } else if (type == FftType::RFFT) {
    result.back() = halve(lengths.back());
  }
  if (verifyShape(*this, "operand", in.getShape(), operand).failed()) {
    return failure();
  }
  return verifyShape(*this, "result", getType().getShape(), result);
}

/// The last two dimensions of a batch of matrices are equal.
static LogicalResult verifySquare(Operation *op, Value matrices) {
  RankedTensorType type = typeOf(matrices);
  int64_t rank = type.getRank();
  if (rank < 2) {
    return op->emitOpError() << "a must have rank 2 or more, but got " << type;
  }
  return verifySize(op, "number of columns of a", type.getDimSize(rank - 1),
                    type.getDimSize(rank - 2));
}

LogicalResult CholeskyOp::verify() {
  // (C2), (C3)
  return verifySquare(*this, getA());
}

LogicalResult TriangularSolveOp::verify() {
  RankedTensorType a = typeOf(getA()), b = typeOf(getB());
  int64_t rank = a.getRank();
  // (C1), (C2)
  if (verifyElementType(*this, "b", getB(), getA()).failed() ||
      verifySquare(*this, getA()).failed() ||
      verifyRank(*this, "b", getB(), rank).failed()) {
    return failure();
  }
  // (C3)
  for (int64_t dim = 0; dim < rank - 2; ++dim) {
    if (verifySize(*this, "batch size of b", b.getDimSize(dim),
                   a.getDimSize(dim))
            .failed()) {
      return failure();
    }
  }
  if (verifySize(*this, "size of b",
                 b.getDimSize(getLeftSide() ? rank - 2 : rank - 1),
                 a.getDimSize(rank - 1))
          .failed()) {
    return failure();
  }
  if (getTransposeA() == Transpose::TRANSPOSE_INVALID) {
    return emitOpError("needs to know whether a is transposed");
  }
  // (C4)
  return verifyShape(*this, "result", getType().getShape(), b.getShape());
}

LogicalResult RngBitGeneratorOp::verify() {
  // (C1)
  return verifyType(*this, "state", getOutputState().getType(),
                    getInitialState().getType());
}

LogicalResult RngOp::verify() {
  // (C2)
  if (getRngDistribution() == RngDistribution::NORMAL &&
      !isa<FloatType>(getType().getElementType())) {
    return emitOpError() << "a normal distribution has floating-point numbers, "
                         << "but got " << getType().getElementType();
  }
  // (C3)
  return verifyShapeOperand(*this, getShape(), getType());
}
