//===- LoopSums.cpp - Sums that loops carry -------------------------------===//

#include "cpp/analysis/LoopSums.h"

#include "cpp/analysis/DataFlow.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// The use behind a chain of additions of a value, each of which has one user.
/// Null if there is no addition or one of them has several users.
static OpOperand *findUseOfSum(Value value) {
  bool isAdded = false;
  while (value.hasOneUse()) {
    OpOperand &use = *value.use_begin();
    if (!isa<stablehlo::AddOp>(use.getOwner())) {
      return isAdded ? &use : nullptr;
    }
    isAdded = true;
    value = use.getOwner()->getResult(0);
  }
  return nullptr;
}

/// What the one body that returns something on an edge returns.
static OpOperand *getReturned(const DataFlowEdge &edge) {
  OpOperand *returned = nullptr;
  for (OpOperand *source : edge.sources) {
    if (source->getOwner()->hasTrait<OpTrait::IsTerminator>()) {
      if (returned) {
        return nullptr;
      }
      returned = source;
    }
  }
  return returned;
}

OpOperand *getReturnedSum(Operation *op, const DataFlowEdge &edge) {
  OpOperand *returned = getReturned(edge);
  if (!returned || edge.sliced) {
    return nullptr;
  }
  // The condition of a loop has an argument, too.
  Value sum;
  for (Value target : edge.targets) {
    if (target.getDefiningOp() != op && !target.use_empty()) {
      if (sum) {
        return nullptr;
      }
      sum = target;
    }
  }
  return sum && findUseOfSum(sum) == returned ? returned : nullptr;
}

bool isAddedToLoopSum(Value value) {
  // Outside of loops chains of additions may be long and are asked of often.
  if (!value.hasOneUse() ||
      !isa<DataFlowOpInterface>((*value.user_begin())->getParentOp())) {
    return false;
  }
  OpOperand *use = findUseOfSum(value);
  if (!use || !use->getOwner()->hasTrait<OpTrait::IsTerminator>()) {
    return false;
  }
  auto loop = dyn_cast<DataFlowOpInterface>(use->getOwner()->getParentOp());
  if (!loop) {
    return false;
  }
  DataFlowEdges edges(loop);
  std::optional<unsigned> number = edges.find(*use);
  return number && getReturnedSum(loop, edges[*number]) == use &&
         llvm::all_of(edges[*number].sources, [&](OpOperand *source) {
           return source == use || isZero(source->get());
         });
}

} // namespace mlir::alpa
