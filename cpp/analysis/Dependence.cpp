//===- Dependence.cpp - Whether operators wait for others -----------------===//

#include "cpp/analysis/Dependence.h"

#include "cpp/analysis/DataFlow.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::alpa {

bool dependsOn(Operation *op, Operation *other, unsigned most) {
  SmallVector<Operation *> work{op};
  llvm::SmallDenseSet<Operation *> seen{op};
  bool found = false;
  while (!work.empty() && !found) {
    if (seen.size() > most) {
      return true;
    }
    forEachUsedValue(work.pop_back_val(), [&](Value used) {
      Operation *maker = used.getDefiningOp();
      found |= maker == other;
      // What stands before the other one does not depend on it.
      if (maker && maker->getBlock() == op->getBlock() &&
          other->isBeforeInBlock(maker) && seen.insert(maker).second) {
        work.push_back(maker);
      }
    });
  }
  return found;
}

} // namespace mlir::alpa
