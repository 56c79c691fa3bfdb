//===- Elementwise.cpp - verifiers of what traits do not say --------------===//
//
// Labels (C1)... are the constraints of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

using namespace mlir;
using namespace mlir::stablehlo;
using namespace mlir::stablehlo::verifiers;

/// A type with real numbers in place of complex ones.
static RankedTensorType realOf(RankedTensorType type) {
  auto complex = dyn_cast<ComplexType>(type.getElementType());
  return complex ? cast<RankedTensorType>(type.clone(complex.getElementType()))
                 : type;
}

LogicalResult AbsOp::verify() {
  // (C1), (C2)
  return verifyType(*this, "result", getType(), realOf(typeOf(getOperand())));
}

LogicalResult RealOp::verify() {
  // (C1), (C2)
  return verifyType(*this, "result", getType(), realOf(typeOf(getOperand())));
}

LogicalResult ImagOp::verify() {
  // (C1), (C2)
  return verifyType(*this, "result", getType(), realOf(typeOf(getOperand())));
}

LogicalResult ComplexOp::verify() {
  RankedTensorType real = typeOf(getLhs());
  // (C2), (C3)
  return verifyType(*this, "result", getType(),
                    real.clone(ComplexType::get(real.getElementType())));
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
  ArrayRef<int64_t> shape = typeOf(getOperand()).getShape();
  ArrayRef<int64_t> min = typeOf(getMin()).getShape();
  ArrayRef<int64_t> max = typeOf(getMax()).getShape();
  // (C1), (C2), (C4)
  return failure(
      verifyShape(*this, "result", getType().getShape(), shape).failed() ||
      (!min.empty() && verifyShape(*this, "min", min, shape).failed()) ||
      (!max.empty() && verifyShape(*this, "max", max, shape).failed()));
}

LogicalResult OptimizationBarrierOp::verify() {
  // (C1)
  if (getOperandTypes() != getResultTypes()) {
    return emitOpError() << "operands are of (" << getOperandTypes()
                         << "), results of (" << getResultTypes() << ")";
  }
  return success();
}
