//===- Normalization.cpp - verifiers of batch normalization ---------------===//
//
// Labels (C1)... are the constraints of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

using namespace mlir;
using namespace mlir::stablehlo;
using namespace mlir::stablehlo::verifiers;

/// Tensors of the operand's shape, the first operand and result and those that
/// are given, and vectors of one entry for each feature: (C1), and what says
/// that shapes agree.
static LogicalResult verifyBatchNorm(Operation *op, int64_t featureDim,
                                     Value gradOutput = {}) {
  RankedTensorType type = typeOf(op->getOperand(0));
  if (verifyDim(op, "feature index", featureDim, type.getRank()).failed()) {
    return failure();
  }
  SmallVector<int64_t> features = {type.getDimSize(featureDim)};
  for (Value value : llvm::concat<Value>(llvm::to_vector(op->getOperands()),
                                         llvm::to_vector(op->getResults()))) {
    bool isVector = value != op->getOperand(0) && value != op->getResult(0) &&
                    value != gradOutput;
    ArrayRef<int64_t> shape = isVector ? ArrayRef(features) : type.getShape();
    if (verifyShape(op, isVector ? "a vector of features" : "the other tensor",
                    typeOf(value).getShape(), shape)
            .failed()) {
      return failure();
    }
  }
  return success();
}

LogicalResult BatchNormGradOp::verify() {
  return verifyBatchNorm(*this, getFeatureIndex(), getGradOutput());
}

LogicalResult BatchNormInferenceOp::verify() {
  return verifyBatchNorm(*this, getFeatureIndex());
}

LogicalResult BatchNormTrainingOp::verify() {
  return verifyBatchNorm(*this, getFeatureIndex());
}
