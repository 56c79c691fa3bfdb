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
  // (C1)
  if (verifyReturnsPred(*this, "the condition", getCond()).failed() ||
      verifyReturn(*this, "the body", getBody(), types.size()).failed()) {
    return failure();
  }
  // (C2), (C3)
  for (TypeRange others :
       {TypeRange(getResultTypes()), TypeRange(getCond().getArgumentTypes()),
        TypeRange(getBody().getArgumentTypes()),
        TypeRange(getReturn(getBody())->getOperandTypes())}) {
    if (!hlo::isCompatibleForHloTypeInference(types, others)) {
      return emitOpError() << "operands, results, arguments of both regions "
                              "and the values that the body returns must have "
                              "compatible types, but got ("
                           << types << ") and (" << others << ")";
    }
  }
  return success();
}

/// Branches take nothing, and return what the results have in common.
static LogicalResult verifyBranches(Operation *op) {
  for (auto [index, branch] : llvm::enumerate(op->getRegions())) {
    std::string name = "branch " + std::to_string(index);
    if (verifyReturn(op, name, branch, op->getNumResults()).failed() ||
        verifyCount(op, "arguments of " + name, branch.getNumArguments(), 0)
            .failed()) {
      return failure();
    }
  }
  for (auto [index, result] : llvm::enumerate(op->getResultTypes())) {
    SmallVector<Type> types;
    for (Region &branch : op->getRegions()) {
      types.push_back(getReturn(branch)->getOperand(index).getType());
      if (!hlo::isCompatibleForHloTypeInference(types.front(), types.back())) {
        return op->emitOpError() << "branches 0 and " << types.size() - 1
                                 << " return " << types.front() << " and "
                                 << types.back() << " as value " << index;
      }
    }
    FailureOr<Type> common = hlo::inferLeastSpecificType(op->getLoc(), types);
    if (failed(common) ||
        verifyType(op, "result " + std::to_string(index), result, *common)
            .failed()) {
      return failure();
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
  return verifyBranches(*this);
}

LogicalResult IfOp::verify() {
  // (C1) to (C3)
  return verifyBranches(*this);
}

LogicalResult TupleOp::verify() {
  // (C1)
  if (TypeRange(cast<TupleType>(getType()).getTypes()) != getVal().getTypes()) {
    return emitOpError() << "values are of (" << getVal().getTypes()
                         << "), the result of " << getType();
  }
  return success();
}

LogicalResult GetTupleElementOp::verify() {
  auto type = cast<TupleType>(getOperand().getType());
  // (C1)
  if (getIndex() >= type.size()) {
    return emitOpError() << "index " << getIndex() << " is not in [0, "
                         << type.size() << ")";
  }
  // (C2)
  return verifyType(*this, "result", getType(), type.getType(getIndex()));
}
