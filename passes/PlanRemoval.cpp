//===- PlanRemoval.cpp - Taking the plan off a module ---------------------===//

#include "passes/PlanRemoval.h"

#include "dialects/alpa/Alpa.h"
#include "mlir/IR/Builders.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/MapVector.h"

namespace mlir::alpa {

void joinBarriers(Block &block) {
  llvm::MapVector<Attribute, SmallVector<Operation *>> groups;
  for (Operation &op : block) {
    if (Attribute group = op.getAttr(kBarrierAttrName)) {
      groups[group].push_back(&op);
    }
    for (Region &region : op.getRegions()) {
      for (Block &inner : region) {
        joinBarriers(inner);
      }
    }
  }
  for (auto &[group, parts] : groups) {
    SmallVector<Value> operands;
    for (Operation *part : parts) {
      operands.push_back(part->getOperand(0));
    }
    OpBuilder builder(parts.back());
    auto joined = stablehlo::OptimizationBarrierOp::create(
        builder, parts.back()->getLoc(), TypeRange(ValueRange(operands)),
        operands);
    for (auto [part, result] : llvm::zip(parts, joined.getResults())) {
      part->getResult(0).replaceAllUsesWith(result);
      part->erase();
    }
  }
}

void removePlan(Operation *op) {
  for (StringRef name :
       {StringRef(kOperandsAttrName), StringRef(kResultsAttrName),
        StringRef(kStrategyAttrName), StringRef(kRuleAttrName),
        StringRef(kRoleAttrName), StringRef(kFollowsAttrName),
        StringRef(kLayerAttrName), StringRef(kPhaseAttrName),
        StringRef(kOnceAttrName)}) {
    op->removeDiscardableAttr(name);
  }
}

} // namespace mlir::alpa
