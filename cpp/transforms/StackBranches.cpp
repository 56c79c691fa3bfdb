//===- StackBranches.cpp - Branches that return tensors in parts ----------===//
//
//   %r:2 = case %i { return %a, %b } { return %c, %d }    // %r#0 is cut
//
// becomes, with the parts of %a and %c that are made inside of the branches,
//
//   %p0 = case %i { return %a0 } { return %c0 }
//   %p1 = case %i { return %a1 } { return %c1 }
//   %r = case %i { return %b } { return %d }
//
//===----------------------------------------------------------------------===//

#include "cpp/transforms/StackParts.h"

#include "cpp/analysis/DataFlow.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::alpa {

using namespace stablehlo;

bool StackParts::isBranching(Operation *op) { return isa<CaseOp, IfOp>(op); }

bool StackParts::isReached(Block *block) {
  while (block != &function.getBody().front()) {
    Operation *parent = block->getParentOp();
    if (!isBranching(parent)) {
      return false;
    }
    block = parent->getBlock();
  }
  return true;
}

/// Per branch what a result is there.
static SmallVector<Value> getReturned(Operation *op, unsigned number) {
  SmallVector<Value> returned;
  for (Region &region : op->getRegions()) {
    returned.push_back(region.front().getTerminator()->getOperand(number));
  }
  return returned;
}

/// A result is cut where one of its branches is, and all of them are.
void StackParts::spreadBranches(Operation *op) {
  if (isa<ReturnOp>(op)) {
    op = op->getParentOp();
  }
  if (!isClonable(op)) {
    return;
  }
  for (OpResult result : op->getResults()) {
    SmallVector<Value> same = getReturned(op, result.getResultNumber());
    same.push_back(result);
    auto *found = llvm::find_if(same, [&](Value one) { return find(one); });
    if (found != same.end()) {
      StackCut cut = *find(*found);
      for (Value one : same) {
        note(one, cut);
      }
    }
  }
}

/// The branches, which return some values of theirs instead of what they
/// return.
static Operation *returning(Operation *op,
                            ArrayRef<SmallVector<Value>> values) {
  OpBuilder builder(op);
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(op->getOperands());
  state.addTypes(SmallVector<Type>(ValueRange(values.front()).getTypes()));
  state.addAttributes(op->getAttrs());
  for (unsigned branch = 0; branch < op->getNumRegions(); ++branch) {
    state.addRegion();
  }
  Operation *made = builder.create(state);
  for (auto [region, own, returned] :
       llvm::zip(op->getRegions(), made->getRegions(), values)) {
    Block &block = region.front();
    llvm::DenseSet<Operation *> needed;
    SmallVector<Value> work(returned);
    while (!work.empty()) {
      Operation *maker = work.pop_back_val().getDefiningOp();
      if (maker && maker->getBlock() == &block && needed.insert(maker).second) {
        forEachUsedValue(maker, [&](Value used) { work.push_back(used); });
      }
    }
    IRMapping mapping;
    builder.createBlock(&own);
    for (Operation &inner : block) {
      if (needed.contains(&inner)) {
        builder.clone(inner, mapping);
      }
    }
    SmallVector<Value> results;
    for (Value value : returned) {
      results.push_back(mapping.lookupOrDefault(value));
    }
    ReturnOp::create(builder, block.getTerminator()->getLoc(), results);
  }
  return made;
}

Value StackParts::throughBranches(OpResult result, const StackCut &cut,
                                  unsigned part) {
  Operation *maker = result.getOwner();
  SmallVector<Value> returned = getReturned(maker, result.getResultNumber());
  if (llvm::any_of(returned,
                   [&](Value value) { return !isCutAs(value, cut); })) {
    return slice(result, cut, part);
  }
  SmallVector<SmallVector<Value>> own;
  for (Value value : returned) {
    own.push_back({get(value, cut, part)});
  }
  Operation *branching = returning(maker, own);
  made.insert(branching);
  return branching->getResult(0);
}

/// Another operator takes over what is used, where that is not all.
void StackParts::dropUnusedResults(Operation *op) {
  SmallVector<OpResult> used;
  for (OpResult result : op->getResults()) {
    if (!result.use_empty()) {
      used.push_back(result);
    }
  }
  if (used.empty() || used.size() == op->getNumResults() || !isClonable(op)) {
    return;
  }
  SmallVector<SmallVector<Value>> values(op->getNumRegions());
  for (OpResult result : used) {
    for (auto [own, value] :
         llvm::zip(values, getReturned(op, result.getResultNumber()))) {
      own.push_back(value);
    }
  }
  Operation *left = returning(op, values);
  for (auto [before, after] : llvm::zip(used, left->getResults())) {
    before.replaceAllUsesWith(after);
  }
}

} // namespace mlir::alpa
