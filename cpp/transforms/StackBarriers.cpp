//===- StackBarriers.cpp - Barriers that tensors go through in parts ------===//

#include "cpp/transforms/StackParts.h"

#include "cpp/analysis/StrategyGraph.h"
#include "cpp/transforms/LayerScopes.h"
#include <map>

namespace mlir::alpa {

using namespace stablehlo;

/// A stand-in, until it is known what else goes through the barrier.
Value StackParts::throughBarrier(OpResult result, const StackCut &cut,
                                 unsigned part) {
  Operation *barrier = result.getOwner();
  Value operand = barrier->getOperand(result.getResultNumber());
  if (!isOfFunction(barrier) || !isCutAs(operand, cut)) {
    return slice(result, cut, part);
  }
  Value own = get(operand, cut, part);
  OpBuilder builder(barrier);
  auto standIn = OptimizationBarrierOp::create(builder, barrier->getLoc(),
                                               own.getType(), own);
  standIns[barrier].emplace_back(part, standIn);
  return standIn->getResult(0);
}

/// A barrier of some of the values that go through another.
static Operation *makeBarrier(Operation *barrier, ArrayRef<Value> taken,
                              MutableArrayRef<Value> replaced) {
  OpBuilder builder(barrier);
  auto made = OptimizationBarrierOp::create(
      builder, barrier->getLoc(), ValueRange(taken).getTypes(), taken);
  made->setDiscardableAttrs(barrier->getDiscardableAttrDictionary());
  for (auto [before, after] : llvm::zip(replaced, made->getResults())) {
    before.replaceAllUsesWith(after);
  }
  return made;
}

/// Barriers of what is needed of one, and of what goes through it in parts.
void StackParts::rebuild(Operation *barrier) {
  SmallVector<std::pair<unsigned, Operation *>> own = standIns.lookup(barrier);
  // By part, behind those that are whole.
  std::map<unsigned, std::pair<SmallVector<Value>, SmallVector<Value>>> groups;
  auto take = [&](unsigned group, Value operand, Value result) {
    groups[group].first.push_back(operand);
    groups[group].second.push_back(result);
  };
  for (auto [operand, result] :
       llvm::zip(barrier->getOperands(), barrier->getResults())) {
    if (!result.use_empty()) {
      take(0, operand, result);
    }
  }
  bool isInLayer = getScopeLayer(getScope(barrier->getLoc())).has_value();
  for (auto [part, standIn] : own) {
    take(isInLayer ? part + 1 : 0, standIn->getOperand(0),
         standIn->getResult(0));
  }
  for (auto &[group, values] : groups) {
    Operation *rebuilt = makeBarrier(barrier, values.first, values.second);
    if (group > 0) {
      made.insert(rebuilt);
    }
  }
  for (auto [part, standIn] : own) {
    standIn->erase();
  }
  barrier->erase();
}

} // namespace mlir::alpa
