//===- SharedReads.cpp - Products that read one value ---------------------===//

#include "cpp/analysis/SharedReads.h"

#include "cpp/analysis/ArgumentUses.h"
#include "dialects/alpa/Alpa.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace mlir::alpa {

/// Whether operators run at the same place of a pipeline.
static bool runTogether(Operation *first, Operation *second) {
  return first->getBlock() == second->getBlock() &&
         first->getAttr(kLayerAttrName) == second->getAttr(kLayerAttrName) &&
         first->getAttr(kPhaseAttrName) == second->getAttr(kPhaseAttrName);
}

SmallVector<OpOperand *> findUsesByProducts(OpOperand &operand) {
  SmallVector<OpOperand *> uses;
  llvm::SmallPtrSet<Operation *, 4> products;
  for (OpOperand &use : operand.get().getUses()) {
    Operation *user = use.getOwner();
    if (!runTogether(user, operand.getOwner())) {
      continue;
    }
    std::optional<ShardingRule> rule = getShardingRule(user);
    if (rule && isProduct(*rule)) {
      uses.push_back(&use);
      products.insert(user);
    }
  }
  return products.size() < 2 ? SmallVector<OpOperand *>() : uses;
}

} // namespace mlir::alpa
