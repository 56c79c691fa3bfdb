//===- PlanRemoval.cpp - Taking the plan off a module ---------------------===//

#include "passes/PlanRemoval.h"

#include "cpp/transforms/Reordering.h"
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
    // Another barrier, joined before, may have taken some of them along.
    llvm::sort(parts, [](Operation *left, Operation *right) {
      return left->isBeforeInBlock(right);
    });
    SmallVector<Value> operands;
    for (Operation *part : parts) {
      operands.push_back(part->getOperand(0));
    }
    OpBuilder builder(parts.back()->getContext());
    builder.setInsertionPointAfter(parts.back());
    auto joined = stablehlo::OptimizationBarrierOp::create(
        builder, parts.back()->getLoc(), TypeRange(ValueRange(operands)),
        operands);
    for (auto [part, result] : llvm::zip(parts, joined.getResults())) {
      part->getResult(0).replaceAllUsesWith(result);
    }
    // Constraints and reshards of theirs come behind the last part.
    moveUsersBehind(parts.front(), joined);
    for (Operation *part : parts) {
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
        StringRef(kOnceAttrName), StringRef(kTripCountAttrName),
        StringRef(kPartialEdgesAttrName), StringRef(kProductRingAttrName)}) {
    op->removeDiscardableAttr(name);
  }
}

} // namespace mlir::alpa
