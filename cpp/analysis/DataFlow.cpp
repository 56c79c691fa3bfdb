//===- DataFlow.cpp - What an operator uses and is used by ----------------===//

#include "cpp/analysis/DataFlow.h"

#include "cpp/analysis/HostMoves.h"
#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/DataFlow.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// Uses of values from outside in the regions of an operator.
static void forEachUseInRegions(Operation *op,
                                function_ref<void(OpOperand &)> visit) {
  for (Region &region : op->getRegions()) {
    region.walk([&](Operation *inner) {
      for (OpOperand &operand : inner->getOpOperands()) {
        if (!op->isAncestor(operand.get().getParentRegion()->getParentOp())) {
          visit(operand);
        }
      }
    });
  }
}

void forEachUsedValue(Operation *op, function_ref<void(Value)> visit) {
  for (Value operand : op->getOperands()) {
    visit(operand);
  }
  forEachUseInRegions(op, [&](OpOperand &operand) { visit(operand.get()); });
}

void forEachCapture(Operation *op, function_ref<void(OpOperand &)> visit) {
  if (!isa<DataFlowOpInterface>(op)) {
    forEachUseInRegions(op, visit);
  }
}

void addAncestors(Operation *op, llvm::DenseSet<Operation *> &ancestors) {
  SmallVector<Operation *> work = {op};
  while (!work.empty()) {
    forEachUsedValue(work.pop_back_val(), [&](Value value) {
      Operation *maker = value.getDefiningOp();
      if (maker && ancestors.insert(maker).second) {
        work.push_back(maker);
      }
    });
  }
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

bool isClonable(Operation *op) {
  // XLA is told of an effect, so that it moves what it is told to.
  return isMemoryEffectFree(op) || isHostMove(op);
}

bool isZero(Value value) {
  Operation *maker = value.getDefiningOp();
  if (!maker) {
    return false;
  }
  if (auto constant = dyn_cast<stablehlo::ConstantOp>(maker)) {
    auto number = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!number || !number.isSplat()) {
      return false;
    }
    Type element = number.getElementType();
    if (isa<FloatType>(element)) {
      llvm::APFloat zero = number.getSplatValue<llvm::APFloat>();
      return zero.isZero() && !zero.isNegative();
    }
    return isa<IntegerType>(element) &&
           number.getSplatValue<llvm::APInt>().isZero();
  }
  // A pad has a second operand, what it pads with.
  return isa<stablehlo::BroadcastInDimOp, stablehlo::ReshapeOp,
             stablehlo::PadOp>(maker) &&
         llvm::all_of(maker->getOperands(), isZero);
}

int64_t getPhase(Operation *op) {
  auto phase = op->getAttrOfType<IntegerAttr>(kPhaseAttrName);
  return phase ? phase.getInt() : -1;
}

bool isJoin(Operation *op) { return isa<AccumulateOp, CollectOp>(op); }

bool runsOnce(Operation *op) {
  return op->hasAttr(kOnceAttrName) || getPhase(op) >= kApplyPhase;
}

} // namespace mlir::alpa
