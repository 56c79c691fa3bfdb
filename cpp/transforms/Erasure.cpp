//===- Erasure.cpp - Operators that nothing uses --------------------------===//

#include "cpp/transforms/Erasure.h"

#include "cpp/analysis/DataFlow.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::alpa {

void eraseUnused(Block &block) {
  auto operations =
      llvm::to_vector(llvm::make_pointer_range(block.without_terminator()));
  for (Operation *op : llvm::reverse(operations)) {
    if (op->use_empty() && isClonable(op)) {
      op->erase();
    }
  }
}

void eraseUnused(ArrayRef<Operation *> candidates) {
  llvm::SetVector<Operation *> left(llvm::from_range, candidates);
  while (!left.empty()) {
    Operation *op = left.pop_back_val();
    if (!isOpTriviallyDead(op)) {
      continue;
    }
    for (Value operand : op->getOperands()) {
      if (Operation *maker = operand.getDefiningOp()) {
        left.insert(maker);
      }
    }
    op->walk([&](Operation *inner) { left.remove(inner); });
    op->erase();
  }
}

} // namespace mlir::alpa
