//===- DataFlow.cpp - What an operator uses and is used by ----------------===//

#include "cpp/analysis/DataFlow.h"

#include "dialects/alpa/Alpa.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

namespace mlir::alpa {

void forEachUsedValue(Operation *op, function_ref<void(Value)> visit) {
  for (Value operand : op->getOperands()) {
    visit(operand);
  }
  if (op->getNumRegions() == 0) {
    return;
  }
  op->walk([&](Operation *inner) {
    if (inner == op) {
      return;
    }
    for (Value operand : inner->getOperands()) {
      Region *region = operand.getParentRegion();
      if (!op->isAncestor(region->getParentOp())) {
        visit(operand);
      }
    }
  });
}

void addDependents(Block &block, llvm::DenseSet<Value> &values) {
  for (Operation &op : block) {
    bool isDependent = false;
    forEachUsedValue(
        &op, [&](Value value) { isDependent |= values.contains(value); });
    if (isDependent) {
      values.insert(op.result_begin(), op.result_end());
    }
  }
}

bool isClonable(Operation *op) { return isMemoryEffectFree(op); }

int64_t getPhase(Operation *op) {
  auto phase = op->getAttrOfType<IntegerAttr>(kPhaseAttrName);
  return phase ? phase.getInt() : -1;
}

bool isJoin(Operation *op) { return isa<AccumulateOp, CollectOp>(op); }

bool runsOnce(Operation *op) {
  return op->hasAttr(kOnceAttrName) || getPhase(op) >= kApplyPhase;
}

} // namespace mlir::alpa
