//===- Elementwise.cpp - verifiers of what traits do not say --------------===//
//
// Labels (C1)... are the constraints of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

using namespace mlir;
using namespace mlir::stablehlo;
using namespace mlir::stablehlo::verifiers;

LogicalResult CompareOp::verify() {
  // (C1)
  return verifyElementType(*this, "rhs", getRhs(), getLhs());
}

LogicalResult SelectOp::verify() {
  RankedTensorType pred = typeOf(getPred()), type = getType();
  // (C2)
  if (verifyElementType(*this, "on_true", getOnTrue(), getResult()).failed() ||
      verifyElementType(*this, "on_false", getOnFalse(), getResult())
          .failed() ||
      verifyShape(*this, "on_true", typeOf(getOnTrue()).getShape(),
                  type.getShape())
          .failed() ||
      verifyShape(*this, "on_false", typeOf(getOnFalse()).getShape(),
                  type.getShape())
          .failed()) {
    return failure();
  }
  // (C1)
  if (pred.getRank() == 0) {
    return success();
  }
  return verifyShape(*this, "pred", pred.getShape(), type.getShape());
}

LogicalResult ClampOp::verify() {
  // (C3), (C4)
  if (verifyElementType(*this, "min", getMin(), getOperand()).failed() ||
      verifyElementType(*this, "max", getMax(), getOperand()).failed() ||
      verifyElementType(*this, "result", getResult(), getOperand()).failed() ||
      verifyShape(*this, "result", getType().getShape(),
                  typeOf(getOperand()).getShape())
          .failed()) {
    return failure();
  }
  // (C1), (C2)
  ArrayRef<int64_t> shape = typeOf(getOperand()).getShape();
  ArrayRef<int64_t> min = typeOf(getMin()).getShape();
  ArrayRef<int64_t> max = typeOf(getMax()).getShape();
  return failure(
      (!min.empty() && verifyShape(*this, "min", min, shape).failed()) ||
      (!max.empty() && verifyShape(*this, "max", max, shape).failed()));
}

LogicalResult ReducePrecisionOp::verify() {
  auto exponent = static_cast<int32_t>(getExponentBits());
  auto mantissa = static_cast<int32_t>(getMantissaBits());
  // (C2), (C3)
  if (exponent < 1 || mantissa < 0) {
    return emitOpError() << "needs 1 exponent bit or more and 0 mantissa bits "
                            "or more, but got "
                         << exponent << " and " << mantissa;
  }
  return success();
}

LogicalResult OptimizationBarrierOp::verify() {
  // (C1)
  if (getOperandTypes() != getResultTypes()) {
    return emitOpError() << "operands are of (" << getOperandTypes()
                         << "), results of (" << getResultTypes() << ")";
  }
  return success();
}
