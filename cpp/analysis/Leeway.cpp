//===- Leeway.cpp - What computing need not wait for ----------------------===//

#include "cpp/analysis/Leeway.h"

#include "cpp/analysis/ArgumentUses.h"
#include "cpp/analysis/DataFlow.h"
#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/ShardingRule.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

static bool hasProduct(Operation *op) {
  return op
      ->walk([](Operation *inner) {
        return isProduct(inner) ? WalkResult::interrupt()
                                : WalkResult::advance();
      })
      .wasInterrupted();
}

/// Results that nothing of the step waits for: the state after it, and what is
/// added up over micro-batches.
static llvm::SmallDenseSet<unsigned> findLateResults(func::FuncOp function) {
  llvm::SmallDenseSet<unsigned> late;
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    if (auto alias =
            function.getArgAttrOfType<IntegerAttr>(index, kAliasAttrName)) {
      late.insert(static_cast<unsigned>(alias.getInt()));
    }
  }
  for (unsigned index = 0; index < function.getNumResults(); ++index) {
    if (function.getResultAttr(index, kAccumulatorAttrName) ||
        function.getResultAttr(index, kOutputAttrName)) {
      late.insert(index);
    }
  }
  return late;
}

Leeway::Leeway(func::FuncOp function) {
  Block &block = function.getBody().front();
  llvm::SmallDenseSet<unsigned> late = findLateResults(function);
  for (OpOperand &operand : block.getTerminator()->getOpOperands()) {
    if (!late.contains(operand.getOperandNumber())) {
      urgent.insert(operand.get());
    }
  }
  visit(block);
}

void Leeway::visit(Block &block) {
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    bool isUrgent = llvm::any_of(
        op.getResults(), [&](Value result) { return urgent.contains(result); });
    // Rules take longer to make.
    isUrgent = isUrgent || hasProduct(&op);
    if (isUrgent) {
      forEachUsedValue(&op, [&](Value used) { urgent.insert(used); });
    }
  }
}

/// The argument of the step that a value is, perhaps in another type or shape.
static BlockArgument findArgument(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (!isa<stablehlo::ConvertOp, stablehlo::ReshapeOp, stablehlo::TransposeOp,
             stablehlo::OptimizationBarrierOp, ReshardOp, ResolveOp>(op) ||
        op->getNumOperands() != 1) {
      return {};
    }
    value = op->getOperand(0);
  }
  return cast<BlockArgument>(value);
}

Beside Leeway::get(Value value) const {
  Block *block = value.getParentBlock();
  auto function = dyn_cast<func::FuncOp>(block->getParentOp());
  if (!function) {
    return Beside::Nothing;
  }
  if (!urgent.contains(value)) {
    return Beside::Gradients;
  }
  BlockArgument argument = findArgument(value);
  bool isState =
      argument &&
      (function.getArgAttr(argument.getArgNumber(), kAliasAttrName) ||
       function.getArgAttr(argument.getArgNumber(), kInputAttrName));
  return isState ? Beside::Parameters : Beside::Nothing;
}

} // namespace mlir::alpa
