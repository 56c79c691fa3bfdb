//===- JoinedRegions.cpp - Joined rows in loops and branches --------------===//

#include "cpp/transforms/JoinedRows.h"
#include "cpp/transforms/SortedRows.h"
#include "dialects/stablehlo/ShardingRules/KnownValues.h"

namespace mlir::alpa {

/// Whether elements are the same along a dimension; of what a loop carries, as
/// long as its turns leave it so.
bool JoinedRows::isUniform(Value value, int64_t dim) {
  value = stablehlo::getBeforeLoops(value);
  auto argument = dyn_cast<BlockArgument>(value);
  auto loop =
      argument
          ? dyn_cast<stablehlo::WhileOp>(argument.getOwner()->getParentOp())
          : stablehlo::WhileOp();
  if (!loop) {
    return isUniformAlong(value, dim);
  }
  if (refuted.contains({value, dim})) {
    return false;
  }
  assumed.insert({value, dim});
  return isUniform(loop->getOperand(argument.getArgNumber()), dim);
}

/// Whether what was taken to be the same along a dimension is handed on so, or
/// has an order; if it is not, it will not be taken for that again.
bool JoinedRows::keepsAssumed(stablehlo::WhileOp op) {
  Block &body = op.getBody().front(), &condition = op.getCond().front();
  // To look at what is handed on may take more to be the same.
  for (size_t before = 0; before != assumed.size();) {
    before = assumed.size();
    for (auto [value, dim] : llvm::to_vector(assumed)) {
      auto argument = cast<BlockArgument>(value);
      const JoinedOrder *order = getOrder(value);
      bool isOfLoop =
          argument.getOwner() == &body || argument.getOwner() == &condition;
      if (isOfLoop && !(order && order->dim == dim) &&
          !isUniform(body.getTerminator()->getOperand(argument.getArgNumber()),
                     dim)) {
        refuted.insert({value, dim});
        return false;
      }
    }
  }
  return true;
}

/// What a loop hands on has the same order in all of its turns.
bool JoinedRows::visitWhile(stablehlo::WhileOp op) {
  Block &body = op.getBody().front(), &condition = op.getCond().front();
  auto carry = [&](unsigned number, const JoinedOrder &order,
                   Operation *origin) {
    for (Value value :
         {Value(body.getArgument(number)), Value(condition.getArgument(number)),
          Value(op->getResult(number))}) {
      set(value, order, origin);
    }
  };
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    if (const JoinedOrder *order = getOrder(operand)) {
      carry(number, JoinedOrder(*order), origins.lookup(operand));
    }
  }
  size_t numSteps = steps.size(), numKnown = known.size(),
         numOthers = others.size();
  for (bool isSame = false; !isSame;) {
    steps.truncate(numSteps);
    known.truncate(numKnown);
    others.truncate(numOthers);
    if (!visit(condition) || !visit(body)) {
      return false;
    }
    isSame = true;
    for (OpOperand &returned : body.getTerminator()->getOpOperands()) {
      unsigned number = returned.getOperandNumber();
      const JoinedOrder *made = getOrder(returned.get());
      const JoinedOrder *before = getOrder(body.getArgument(number));
      if (made && before && *made == *before) {
        classes.unionSets(origins.lookup(returned.get()),
                          origins.lookup(body.getArgument(number)));
      } else if (made && !before &&
                 isUniform(op->getOperand(number), made->dim)) {
        // Zeros that each turn adds to, or writes into.
        carry(number, JoinedOrder(*made), origins.lookup(returned.get()));
        isSame = false;
      } else if (made) {
        return exclude(returned.get());
      } else if (before && !isUniform(returned.get(), before->dim)) {
        return exclude(Value(body.getArgument(number)));
      }
    }
  }
  if (!keepsAssumed(op)) {
    return false;
  }
  return llvm::none_of(condition.getTerminator()->getOperands(),
                       [&](Value value) { return getOrder(value); }) ||
         exclude(condition.getTerminator());
}

/// Every branch returns rows in one order, or all of them alike.
bool JoinedRows::visitBranches(Operation *op) {
  if (getOrder(op->getOperand(0))) {
    return exclude(op->getOperand(0));
  }
  for (Region &branch : op->getRegions()) {
    if (!visit(branch.front())) {
      return false;
    }
  }
  for (OpResult result : op->getResults()) {
    SmallVector<Value> returned;
    Value ordered;
    for (Region &branch : op->getRegions()) {
      returned.push_back(
          branch.front().getTerminator()->getOperand(result.getResultNumber()));
      ordered = getOrder(returned.back()) ? returned.back() : ordered;
    }
    if (!ordered) {
      continue;
    }
    for (Value value : returned) {
      const JoinedOrder *order = getOrder(value);
      if (order ? !(*order == *getOrder(ordered))
                : !isUniform(value, getOrder(ordered)->dim)) {
        return exclude(ordered);
      }
      if (order) {
        classes.unionSets(origins.lookup(ordered), origins.lookup(value));
      }
    }
    set(result, JoinedOrder(*getOrder(ordered)), origins.lookup(ordered));
  }
  return true;
}

} // namespace mlir::alpa
