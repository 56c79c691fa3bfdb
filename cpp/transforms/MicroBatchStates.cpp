//===- MicroBatchStates.cpp - What one micro-batch has of a value ---------===//

#include "cpp/transforms/MicroBatchStates.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/StrategyGraph.h"
#include "cpp/transforms/LayerScopes.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// The scope that the front end opens around gradients.
static constexpr StringLiteral kGradientScope = "alpa_gradients";

bool isGradientBarrier(Operation *op) {
  return isa<stablehlo::OptimizationBarrierOp>(op) &&
         StringRef(getScope(op->getLoc())).contains(kGradientScope);
}

bool isGradient(Operation *op) {
  return isBackwardScope(getScope(op->getLoc()));
}

bool takesGradients(Operation *op) {
  return isa<stablehlo::WhileOp>(op) && !isGradient(op) &&
         op->walk([](Operation *inner) {
             return isGradient(inner) ? WalkResult::interrupt()
                                      : WalkResult::advance();
           }).wasInterrupted();
}

bool isMadeOfGradients(Operation *op) {
  llvm::DenseSet<Operation *> ancestors;
  addAncestors(op, ancestors);
  return !isGradient(op) && llvm::any_of(ancestors, isGradient);
}

/// Whether an operator outside of what is differentiated is made of what the
/// function of a second pass takes from the first.
static bool isMadeOfFirstPass(Operation *op) {
  if (StringRef(getScope(op->getLoc())).contains("jvp(")) {
    return false;
  }
  llvm::DenseSet<Operation *> ancestors = {op};
  addAncestors(op, ancestors);
  return llvm::any_of(ancestors, [](Operation *one) {
    bool isFound = false;
    forEachUsedValue(one, [&](Value value) {
      auto argument = dyn_cast<BlockArgument>(value);
      auto function =
          argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp())
                   : func::FuncOp();
      isFound |= function && function.getArgAttr(argument.getArgNumber(),
                                                 kAccumulatorAttrName);
    });
    return isFound;
  });
}

bool needsSecondPass(const MicroBatchStates &states) {
  Operation *op = states.getRefused();
  Operation *cause = states.getCause(op);
  if (cause == op) {
    return false;
  }
  if (cause->hasAttr(kOnceAttrName)) {
    return true;
  }
  // A gradient of which one summand is the same for all micro-batches.
  return isGradient(cause)
             ? !isGradient(op)
             : isMadeOfGradients(cause) || isMadeOfFirstPass(cause);
}

MicroBatchStates::MicroBatchStates(func::FuncOp function,
                                   int64_t numMicroBatches,
                                   const llvm::DenseSet<unsigned> &split,
                                   bool cutsMade)
    : function(function), numMicroBatches(numMicroBatches), cutsMade(cutsMade) {
  Block &block = function.getBody().front();
  for (Operation &op : block) {
    if (isGradientBarrier(&op)) {
      addAncestors(&op, ancestors);
    }
    if (isGradient(&op)) {
      differentiated.insert(&op);
      addAncestors(&op, differentiated);
      ofGradients.insert(op.result_begin(), op.result_end());
    }
  }
  addDependents(block, ofGradients);
  findReported();
  for (unsigned argument : split) {
    setState(block.getArgument(argument), 0);
  }
  visit(block);
  measure();
  if (!refused && lateFlops > splitFlops + summandFlops) {
    refused = late;
  }
}

void MicroBatchStates::measure() {
  for (auto &[op, rows] : chosen) {
    auto isOwn = [](TimeEntry entry) { return entry != kReplicated; };
    auto isPart = [](TimeEntry entry) { return entry >= 0; };
    bool isDivided = llvm::any_of(rows.operands, isPart) ||
                     llvm::any_of(rows.results, isPart);
    if (!isa<DataFlowOpInterface>(op)) {
      (isDivided ? splitFlops : summandFlops) += getProductFlops(op);
      allSplitFlops += isDivided ? getAllFlops(op) : 0;
    }
    for (Value result : op->getResults()) {
      makesParts |= getState(result) >= 0;
      splitBytes +=
          isOwn(getState(result)) ? getTensorBytes(result.getType()) : 0;
    }
    for (auto [operand, needed] : llvm::zip(op->getOperands(), rows.operands)) {
      TimeEntry state = getState(operand);
      bool isSliced = state == kReplicated && needed >= 0 &&
                      isa<BlockArgument>(operand) &&
                      operand.getParentRegion() == &function.getBody();
      bool isMadeWhole = isOwn(state) && needed == kReplicated;
      if ((isSliced || isMadeWhole) &&
          countedArguments.insert(operand).second) {
        wholeBytes += getTensorBytes(operand.getType());
      }
    }
  }
}

double MicroBatchStates::getGradientFlops() const {
  double flops = 0;
  for (Operation *op : ancestors) {
    flops += getProductFlops(op);
  }
  return flops;
}

void MicroBatchStates::findReported() {
  llvm::DenseSet<int64_t> updates;
  for (BlockArgument argument : function.getArguments()) {
    if (auto result = function.getArgAttrOfType<IntegerAttr>(
            argument.getArgNumber(), kAliasAttrName)) {
      updates.insert(result.getInt());
    }
  }
  Operation *end = function.getBody().front().getTerminator();
  for (OpOperand &operand : end->getOpOperands()) {
    Operation *maker = operand.get().getDefiningOp();
    if (maker && !updates.contains(operand.getOperandNumber()) &&
        reported.insert(maker).second) {
      addAncestors(maker, reported);
    }
  }
}

TimeEntry MicroBatchStates::getState(Value value) const {
  auto state = states.find(value);
  return state == states.end() ? kReplicated : state->second;
}

void MicroBatchStates::setState(Value value, TimeEntry entry) {
  if (entry == kReplicated) {
    states.erase(value);
  } else {
    states[value] = entry;
  }
}

const TimeRows *MicroBatchStates::getRows(Operation *op) const {
  auto rows = chosen.find(op);
  return rows == chosen.end() ? nullptr : &rows->second;
}

bool MicroBatchStates::hasUse(Operation *op,
                              function_ref<bool(TimeEntry)> predicate) const {
  bool found = false;
  forEachUsedValue(op,
                   [&](Value value) { found |= predicate(getState(value)); });
  return found;
}

bool MicroBatchStates::setAfter(Operation *op) {
  Operation *cause = op;
  bool joins = false, isBehind = false;
  forEachUsedValue(op, [&](Value value) {
    joins |= getState(value) >= 0;
    Operation *maker = value.getDefiningOp();
    isBehind |= maker && isGradientBarrier(maker);
    if (!maker || getState(value) != kAfter || isGradientBarrier(maker)) {
      return;
    }
    joins |= joining.contains(maker);
    isBehind |= behind.contains(maker);
    if (Operation *before = getCause(maker); before && cause == op) {
      cause = before;
    }
  });
  causes[op] = cause;
  if (joins && !isGradientBarrier(op) && !op->hasAttr(kOnceAttrName)) {
    joining.insert(op);
  }
  for (Value result : op->getResults()) {
    setState(result, kAfter);
  }
  if (isBehind) {
    behind.insert(op);
  }
  // What no gradient is taken through is there to be looked at, and can wait.
  Operation *outer = function.getBody().front().findAncestorOpInBlock(*op);
  bool isBeside =
      !isBehind && !differentiated.contains(outer) && !takesGradients(outer) &&
      llvm::none_of(outer->getResults(),
                    [&](Value result) { return ofGradients.contains(result); });
  bool isInside = !isBeside && (ancestors.contains(op) || joining.contains(op));
  // What a loop of its own cuts, or nothing does, is refused by nobody.
  double flops = op->hasAttr(kOnceAttrName) ? 0 : getProductFlops(op);
  if (!refused && isInside && flops > 0) {
    refused = op;
  }
  if (!isBehind && flops > 0) {
    late = !late && reported.contains(op) ? op : late;
    lateFlops += flops;
  }
  return false;
}

bool MicroBatchStates::visit(Block &block) {
  bool isDone = true;
  for (Operation &op : block.without_terminator()) {
    isDone &= visit(&op);
  }
  return isDone;
}

/// The function of a pass, which stands in a module of its own, is a loop, and
/// what goes through the batch by itself may stand in front of that.
bool MicroBatchStates::runsInFront(Operation *op) const {
  auto module = function->getParentOfType<ModuleOp>();
  bool isPossible = op->hasAttr(kOnceAttrName) && module->getParentOp();
  forEachUsedValue(op, [&](Value value) {
    isPossible = isPossible && getCost(value, kReplicated);
  });
  return isPossible;
}

bool MicroBatchStates::visit(Operation *op) {
  if (runsInFront(op)) {
    return true;
  }
  // What is felt outside of the program happens once per step, on all rows.
  if (isGradientBarrier(op) || !isClonable(op) || op->hasAttr(kOnceAttrName)) {
    return setAfter(op);
  }
  if (hasUse(op, [](TimeEntry entry) { return entry == kAfter; })) {
    return setAfter(op);
  }
  if (!hasUse(op, [](TimeEntry entry) { return entry != kReplicated; })) {
    return true;
  }
  if (auto dataFlow = dyn_cast<DataFlowOpInterface>(op)) {
    return visitRegions(dataFlow, {}) || setAfter(op);
  }
  if (isa<stablehlo::OptimizationBarrierOp>(op)) {
    return visitBarrier(op);
  }
  return visitByRule(op) || setAfter(op);
}

bool MicroBatchStates::visitBarrier(Operation *op) {
  TimeRows rows;
  for (auto [operand, result] :
       llvm::zip(op->getOperands(), op->getResults())) {
    rows.operands.push_back(getState(operand));
    rows.results.push_back(getState(operand));
    setState(result, getState(operand));
  }
  chosen[op] = rows;
  return true;
}

} // namespace mlir::alpa
