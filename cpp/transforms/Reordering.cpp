//===- Reordering.cpp - Moving operators within a block -------------------===//

#include "cpp/transforms/Reordering.h"

#include "cpp/analysis/DataFlow.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::alpa {

void moveUsersBehind(Operation *first, Operation *op) {
  llvm::SetVector<Operation *> late;
  late.insert(op);
  for (Operation *before = first; before != op;
       before = before->getNextNode()) {
    bool isLate = false;
    forEachUsedValue(before, [&](Value used) {
      isLate |= late.contains(used.getDefiningOp());
    });
    if (isLate) {
      late.insert(before);
    }
  }
  for (auto [user, before] :
       llvm::zip(llvm::drop_begin(late), llvm::drop_end(late))) {
    user->moveAfter(before);
  }
}

} // namespace mlir::alpa
