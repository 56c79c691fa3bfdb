//===- ControlFlow.cpp - verifiers of regions that run or not -------------===//
//
// Labels (C1)... are the constraints of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

using namespace mlir;
using namespace mlir::stablehlo;
using namespace mlir::stablehlo::verifiers;

LogicalResult WhileOp::verify() {
  TypeRange types = getOperandTypes();
  if (verifyReturn(*this, "the condition", getCond(), 1).failed() ||
      verifyReturn(*this, "the body", getBody(), types.size()).failed()) {
    return failure();
  }
  // (C2), (C3)
  if (getResultTypes() != types || getCond().getArgumentTypes() != types ||
      getBody().getArgumentTypes() != types ||
      getReturn(getBody())->getOperandTypes() != types) {
    return emitOpError("operands, results, arguments of both regions and the "
                       "values that the body returns must have the same types");
  }
  // (C1)
  auto condition =
      dyn_cast<RankedTensorType>(getReturn(getCond())->getOperand(0).getType());
  if (!condition || condition.getRank() != 0 ||
      !condition.getElementType().isInteger(1)) {
    return emitOpError() << "the condition must return tensor<i1>, but got "
                         << getReturn(getCond())->getOperand(0).getType();
  }
  return success();
}

/// A branch takes nothing and returns the results.
static LogicalResult verifyBranch(Operation *op, StringRef name,
                                  Region &branch) {
  if (verifyReturn(op, name, branch, op->getNumResults()).failed() ||
      verifyCount(op, "arguments of a branch", branch.getNumArguments(), 0)
          .failed()) {
    return failure();
  }
  for (auto [index, pair] : llvm::enumerate(llvm::zip_equal(
           getReturn(branch)->getOperandTypes(), op->getResultTypes()))) {
    auto [type, expected] = pair;
    if (type != expected) {
      return op->emitOpError() << name << " returns " << type << " as value "
                               << index << ", the result is of " << expected;
    }
  }
  return success();
}

LogicalResult CaseOp::verify() {
  // (C1)
  if (getBranches().empty()) {
    return emitOpError("needs at least one branch");
  }
  // (C2) to (C4)
  for (auto [index, branch] : llvm::enumerate(getBranches())) {
    if (verifyBranch(*this, "branch " + std::to_string(index), branch)
            .failed()) {
      return failure();
    }
  }
  return success();
}

LogicalResult IfOp::verify() {
  // (C1) to (C3)
  return failure(
      verifyBranch(*this, "the true branch", getTrueBranch()).failed() ||
      verifyBranch(*this, "the false branch", getFalseBranch()).failed());
}
