//===- SharedReads.cpp - Products that read one value ---------------------===//

#include "cpp/analysis/SharedReads.h"

#include "cpp/analysis/ArgumentUses.h"
#include "cpp/analysis/DataFlow.h"
#include "dialects/alpa/Alpa.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

/// How many operators behind the first product the last one stands at most.
/// Heuristic: those of an attention's query, key and value are neighbours.
static constexpr unsigned kFarthest = 128;

/// Whether operators run at the same place of a pipeline.
static bool runTogether(Operation *first, Operation *second) {
  return llvm::all_of(
      ArrayRef<StringRef>{kLayerAttrName, kPhaseAttrName, kOnceAttrName},
      [&](StringRef name) {
        return first->getAttr(name) == second->getAttr(name);
      });
}

SmallVector<OpOperand *> findUsesByProducts(OpOperand &operand) {
  Value value = operand.get();
  SmallVector<OpOperand *> uses;
  unsigned numProducts = 0;
  // Products of the group, and what waits for them.
  llvm::DenseSet<Value> made;
  unsigned distance = 0;
  for (Operation *op = operand.getOwner(); op && distance < kFarthest;
       op = op->getNextNode(), ++distance) {
    bool reads = false, waits = false;
    forEachUsedValue(op, [&](Value used) {
      reads |= used == value;
      waits |= made.contains(used);
    });
    bool isMember =
        reads && !waits && runTogether(op, operand.getOwner()) && isProduct(op);
    if (isMember) {
      ++numProducts;
      for (OpOperand &use : op->getOpOperands()) {
        if (use.get() == value) {
          uses.push_back(&use);
        }
      }
    }
    if (isMember || waits) {
      made.insert(op->result_begin(), op->result_end());
    }
  }
  return numProducts < 2 ? SmallVector<OpOperand *>() : uses;
}

} // namespace mlir::alpa
