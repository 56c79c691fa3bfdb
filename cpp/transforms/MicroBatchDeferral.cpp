//===- MicroBatchDeferral.cpp - What is done to sums, not to summands -----===//

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/StrategyGraph.h"
#include "cpp/transforms/MicroBatchStates.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// True if sums of what an operator makes are wider than sums of what it uses,
/// and so closer to the sum over the whole batch.
static bool widens(Operation *op) {
  auto getWidth = [](Value value) {
    Type element = getElementTypeOrSelf(value.getType());
    return element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
  };
  return llvm::any_of(op->getResults(), [&](Value result) {
    return llvm::any_of(op->getOperands(), [&](Value operand) {
      return getWidth(operand) < getWidth(result);
    });
  });
}

bool MicroBatchStates::runsAfter(Operation *user) const {
  func::FuncOp step = function;
  Operation *outer = step.getBody().front().findAncestorOpInBlock(*user);
  return isAfter(outer) || outer->hasTrait<OpTrait::IsTerminator>();
}

/// Numbers, the loss among them, take no memory to add up.
static bool makesNumbers(Operation *op) {
  return llvm::all_of(op->getResultTypes(), [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getRank() == 0;
  });
}

/// What is differentiated is left as it is: its gradients are what is summed.
bool MicroBatchStates::isDeferrable(Operation *op) const {
  if (!chosen.contains(op) || ancestors.contains(op) || makesNumbers(op) ||
      op->getNumRegions() > 0 || widens(op) ||
      isa<DataFlowOpInterface, stablehlo::OptimizationBarrierOp>(op) ||
      getProductFlops(op) > 0) {
    return false;
  }
  bool usesSummand = false;
  for (Value operand : op->getOperands()) {
    TimeEntry state = getState(operand);
    if (state != kPartial && state != kReplicated) {
      return false;
    }
    usesSummand |= state == kPartial;
  }
  return usesSummand && llvm::all_of(op->getResults(), [&](Value result) {
           return getState(result) == kPartial &&
                  llvm::all_of(result.getUsers(), [&](Operation *user) {
                    return runsAfter(user);
                  });
         });
}

bool MicroBatchStates::defer(Operation *op) {
  if (!isDeferrable(op)) {
    return false;
  }
  double saved = 0, added = 0;
  for (Value result : op->getResults()) {
    saved += getTensorBytes(result.getType());
  }
  llvm::SmallDenseSet<Value, 4> seen;
  for (Value operand : op->getOperands()) {
    auto isSummedUp = [&](Operation *user) { return runsAfter(user); };
    if (getState(operand) == kPartial && seen.insert(operand).second &&
        llvm::none_of(operand.getUsers(), isSummedUp)) {
      added += getTensorBytes(operand.getType());
    }
  }
  if (added > saved) {
    return false;
  }
  chosen.erase(op);
  causes[op] = op;
  for (Value result : op->getResults()) {
    setState(result, kAfter);
  }
  return true;
}

void MicroBatchStates::deferSummands() {
  // Of two users of a value the one deferred last may make it worth while for
  // the other.
  for (bool isDone = false; !isDone;) {
    isDone = true;
    for (Operation &op : llvm::reverse(function.getBody().front())) {
      isDone &= !defer(&op);
    }
  }
}

} // namespace mlir::alpa
