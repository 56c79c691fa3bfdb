//===- MicroBatchStates.cpp - What one micro-batch has of a value ---------===//

#include "cpp/transforms/MicroBatchStates.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/StrategyGraph.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

namespace {

/// The scope that the front end opens around gradients.
constexpr StringLiteral kGradientScope = "alpa_gradients";

/// What two ways to a value have in common; none if nothing.
std::optional<TimeEntry> merge(TimeEntry left, TimeEntry right) {
  if (left == right || right == kReplicated) {
    return left;
  }
  return left == kReplicated ? std::optional(right) : std::nullopt;
}

} // namespace

bool isGradientBarrier(Operation *op) {
  return isa<stablehlo::OptimizationBarrierOp>(op) &&
         StringRef(getScope(op->getLoc())).contains(kGradientScope);
}

MicroBatchStates::MicroBatchStates(func::FuncOp function,
                                   int64_t numMicroBatches,
                                   const llvm::DenseSet<unsigned> &split)
    : function(function), numMicroBatches(numMicroBatches) {
  Block &block = function.getBody().front();
  for (Operation &op : block) {
    if (isGradientBarrier(&op)) {
      findAncestors(&op);
    }
  }
  for (unsigned argument : split) {
    setState(block.getArgument(argument), 0);
  }
  visit(block);
  measure();
  if (!refused && lateFlops > splitFlops) {
    refused = late;
  }
}

void MicroBatchStates::measure() {
  for (auto &[op, rows] : chosen) {
    auto isOwn = [](TimeEntry entry) { return entry != kReplicated; };
    if (op->getNumRegions() == 0 || !isControlFlow(op)) {
      splitFlops += getProductFlops(op);
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

void MicroBatchStates::findAncestors(Operation *barrier) {
  SmallVector<Operation *> work = {barrier};
  while (!work.empty()) {
    forEachUsedValue(work.pop_back_val(), [&](Value value) {
      Operation *maker = value.getDefiningOp();
      if (maker && ancestors.insert(maker).second) {
        work.push_back(maker);
      }
    });
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
  if (joins && !isGradientBarrier(op)) {
    joining.insert(op);
  }
  for (Value result : op->getResults()) {
    setState(result, kAfter);
  }
  if (isBehind) {
    behind.insert(op);
  }
  bool isInside = ancestors.contains(op) || joining.contains(op);
  double flops = getProductFlops(op);
  if (!refused && isInside && flops > 0) {
    refused = op;
  }
  if (!isBehind && flops > 0) {
    late = late ? late : op;
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

bool MicroBatchStates::visit(Operation *op) {
  // What is felt outside of the program happens once per step, on all rows.
  if (isGradientBarrier(op) || !isClonable(op)) {
    return setAfter(op);
  }
  if (hasUse(op, [](TimeEntry entry) { return entry == kAfter; })) {
    return setAfter(op);
  }
  if (!hasUse(op, [](TimeEntry entry) { return entry != kReplicated; })) {
    return true;
  }
  if (isa<stablehlo::WhileOp>(op)) {
    SmallVector<TimeEntry> least(op->getNumOperands(), kReplicated);
    return visitLoop(op, least) || setAfter(op);
  }
  if (isControlFlow(op)) {
    return visitBranches(op) || setAfter(op);
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

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void MicroBatchStates::clear(Region &region) {
  region.walk([&](Operation *op) {
    chosen.erase(op);
    causes.erase(op);
    joining.erase(op);
    for (Value result : op->getResults()) {
      states.erase(result);
    }
  });
}

bool MicroBatchStates::visitRegion(Region &region,
                                   ArrayRef<TimeEntry> arguments) {
  clear(region);
  Block &block = region.front();
  for (auto [argument, entry] : llvm::zip(block.getArguments(), arguments)) {
    setState(argument, entry);
  }
  return visit(block);
}

/// Carried values are what they begin with and what every turn makes of them.
bool MicroBatchStates::visitLoop(Operation *op, ArrayRef<TimeEntry> least) {
  Operation *before = refused;
  SmallVector<TimeEntry> carried;
  for (auto [operand, entry] : llvm::zip(op->getOperands(), least)) {
    std::optional<TimeEntry> both = merge(getState(operand), entry);
    if (!both) {
      return false;
    }
    carried.push_back(*both);
  }
  Region &condition = op->getRegion(0), &body = op->getRegion(1);
  for (bool isStable = false; !isStable;) {
    isStable = true;
    if (!visitRegion(condition, carried) || !visitRegion(body, carried)) {
      refused = before;
      return false;
    }
    Operation *next = body.front().getTerminator();
    for (auto [entry, value] : llvm::zip(carried, next->getOperands())) {
      std::optional<TimeEntry> both = merge(entry, getState(value));
      if (!both) {
        return false;
      }
      isStable &= *both == entry;
      entry = *both;
    }
  }
  // All micro-batches have to take as many turns.
  for (Value value : condition.front().getTerminator()->getOperands()) {
    if (getState(value) != kReplicated) {
      return false;
    }
  }
  TimeRows rows;
  rows.operands.assign(carried.begin(), carried.end());
  rows.results.assign(carried.begin(), carried.end());
  for (auto [result, entry] : llvm::zip(op->getResults(), carried)) {
    setState(result, entry);
  }
  chosen[op] = rows;
  return true;
}

bool MicroBatchStates::splitLoop(Operation *loop, ArrayRef<TimeEntry> wanted) {
  SmallVector<TimeEntry> least =
      llvm::map_to_vector(wanted, [](TimeEntry entry) {
        return entry == kAfter ? kReplicated : entry;
      });
  bool isSplit = visitLoop(loop, least);
  for (auto [entry, result] : llvm::zip(wanted, loop->getResults())) {
    isSplit = isSplit && (entry == kAfter || entry == getState(result));
  }
  if (!isSplit) {
    for (Region &region : loop->getRegions()) {
      clear(region);
      for (Value argument : region.front().getArguments()) {
        states.erase(argument);
      }
    }
    chosen.erase(loop);
    for (Value result : loop->getResults()) {
      states.erase(result);
    }
  }
  return isSplit;
}

bool MicroBatchStates::visitBranches(Operation *op) {
  Operation *before = refused;
  TimeRows rows;
  for (Value operand : op->getOperands()) {
    if (!getCost(operand, kReplicated)) {
      return false;
    }
    rows.operands.push_back(kReplicated);
  }
  rows.results.assign(op->getNumResults(), kReplicated);
  for (Region &region : op->getRegions()) {
    if (!visitRegion(region, {})) {
      refused = before;
      return false;
    }
    Operation *end = region.front().getTerminator();
    for (auto [entry, value] : llvm::zip(rows.results, end->getOperands())) {
      std::optional<TimeEntry> both = merge(entry, getState(value));
      if (!both) {
        return false;
      }
      entry = *both;
    }
  }
  for (auto [result, entry] : llvm::zip(op->getResults(), rows.results)) {
    setState(result, entry);
  }
  chosen[op] = rows;
  return true;
}

} // namespace mlir::alpa
