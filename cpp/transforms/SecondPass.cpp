//===- SecondPass.cpp - A second way through the batch --------------------===//

#include "cpp/transforms/SecondPass.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/Entry.h"
#include "cpp/transforms/PassLoop.h"
#include "cpp/transforms/ReferencedFunctions.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

bool mayMeet(func::FuncOp function) {
  Block &block = function.getBody().front();
  auto isMarked = [](Operation &op) { return isGradientBarrier(&op); };
  return llvm::none_of(block, isMarked) &&
         llvm::any_of(block, [](Operation &op) { return isGradient(&op); });
}

SecondPass::SecondPass(func::FuncOp step, const MicroBatchStates &states,
                       KeptExamples kept)
    : step(step), block(step.getBody().front()), states(states), kept(kept) {
  if (kept == KeptExamples::kNone || kept == KeptExamples::kAll) {
    findFirst();
  }
  find();
  findBatch();
}

void SecondPass::findFirst() {
  llvm::DenseSet<Value> marked;
  for (Operation &op : block) {
    bool isMarked = false;
    forEachUsedValue(&op,
                     [&](Value value) { isMarked |= marked.contains(value); });
    if (isGradientBarrier(&op) && !isMarked) {
      firstBarriers.insert(&op);
    }
    if (isGradientBarrier(&op) || isMarked) {
      marked.insert(op.result_begin(), op.result_end());
    }
  }
  for (Operation *barrier : firstBarriers) {
    addAncestors(barrier, early);
  }
}

/// Whether a value is there as a whole once the first pass is through, or has
/// to be for what is behind it.
bool SecondPass::isGiven(Value value) const {
  Operation *maker = value.getDefiningOp();
  if (!maker) {
    return false;
  }
  TimeEntry state = states.getState(value);
  if (state == kReplicated) {
    return getProductFlops(maker) > 0;
  }
  return state < 0 || kept == KeptExamples::kAll;
}

void SecondPass::find() {
  for (Operation &op : block.without_terminator()) {
    if (states.isAfter(&op) && !firstBarriers.contains(&op) &&
        !early.contains(&op)) {
      behind.insert(&op);
    }
  }
  for (Operation *op : behind) {
    use(op);
  }
  for (Value value : block.getTerminator()->getOperands()) {
    if (behind.contains(value.getDefiningOp())) {
      returned.insert(value);
    }
  }
}

bool SecondPass::keepsOperands(Operation *op) const {
  bool isLoss =
      kept == KeptExamples::kLoss && op->isBeforeInBlock(states.getRefused());
  return isLoss ||
         (kept == KeptExamples::kMeeting && states.getCause(op) == op);
}

void SecondPass::use(Operation *op) {
  SmallVector<Value> work;
  bool isMeeting = keepsOperands(op);
  forEachUsedValue(op, [&](Value value) {
    if (isMeeting && value.getDefiningOp() && states.getState(value) >= 0) {
      given.insert(value);
    } else {
      work.push_back(value);
    }
  });
  while (!work.empty()) {
    Value next = work.pop_back_val();
    Operation *maker = next.getDefiningOp();
    if (!maker) {
      inputs.insert(next);
    } else if (behind.contains(maker)) {
      continue;
    } else if (isGiven(next)) {
      given.insert(next);
    } else if (again.insert(maker).second) {
      forEachUsedValue(maker, [&](Value used) { work.push_back(used); });
    }
  }
}

void SecondPass::findBatch() {
  auto divides = [&](Value value) {
    auto type = cast<RankedTensorType>(value.getType());
    return type.getDimSize(0) % states.getNumMicroBatches() == 0;
  };
  for (auto [index, value] : llvm::enumerate(inputs)) {
    if (states.getState(value) == 0) {
      batch.push_back(given.size() + index);
    }
  }
  numInputBatches = batch.size();
  for (auto [index, value] : llvm::enumerate(given)) {
    // What the first gradients come with, per example.
    auto result = cast<OpResult>(value);
    Operation *maker = result.getOwner();
    if (isGradientBarrier(maker) &&
        states.getState(maker->getOperand(result.getResultNumber())) == 0 &&
        divides(value)) {
      batch.push_back(index);
    }
  }
}

void SecondPass::runWhole() {
  for (Operation *op : behind) {
    if (getProductFlops(op) > 0) {
      op->setAttr(kOnceAttrName, UnitAttr::get(op->getContext()));
    }
  }
}

SmallVector<Value> SecondPass::getTaken() const {
  SmallVector<Value> taken(given.begin(), given.end());
  taken.append(inputs.begin(), inputs.end());
  return taken;
}

ModuleOp SecondPass::outline() {
  auto module = step->getParentOfType<ModuleOp>();
  OpBuilder builder(step);
  auto made = ModuleOp::create(builder, step.getLoc());
  builder.setInsertionPointToStart(made.getBody());
  SmallVector<Value> taken = getTaken();
  SmallVector<Value> results(returned.begin(), returned.end());
  auto type = builder.getFunctionType(TypeRange(ValueRange(taken)),
                                      TypeRange(ValueRange(results)));
  auto function =
      func::FuncOp::create(builder, step.getLoc(), step.getName(), type);
  auto *body = new Block();
  function.getBody().push_back(body);
  IRMapping mapping;
  for (Value value : taken) {
    mapping.map(value, body->addArgument(value.getType(), value.getLoc()));
  }
  for (size_t index = 0; index < given.size(); ++index) {
    function.setArgAttr(index, kAccumulatorAttrName,
                        builder.getI64IntegerAttr(index));
  }
  builder.setInsertionPointToEnd(body);
  for (Operation &op : block.without_terminator()) {
    if (!behind.contains(&op) && !again.contains(&op)) {
      continue;
    }
    Operation *copy = builder.clone(op, mapping);
    // Another result of an operator that is made again may be given.
    for (auto [index, result] : llvm::enumerate(op.getResults())) {
      const auto *place = llvm::find(taken, result);
      mapping.map(result,
                  place == taken.end()
                      ? copy->getResult(index)
                      : Value(body->getArgument(place - taken.begin())));
    }
  }
  func::ReturnOp::create(builder, block.getTerminator()->getLoc(),
                         llvm::map_to_vector(results, [&](Value value) {
                           return mapping.lookup(value);
                         }));
  copyReferencedFunctions(module, made);
  return made;
}

LogicalResult SecondPass::embed(ModuleOp module) {
  FailureOr<func::FuncOp> function = getEntryFunction(module);
  if (failed(function)) {
    return failure();
  }
  SmallVector<Value> taken = getTaken();
  OpBuilder builder(block.getTerminator());
  FailureOr<SmallVector<Value>> results =
      emitPassLoop(builder, *function, taken, states.getNumMicroBatches());
  if (failed(results)) {
    return failure();
  }
  for (auto [old, made] : llvm::zip_equal(returned, *results)) {
    Value(old).replaceUsesWithIf(made, [&](OpOperand &use) {
      return use.getOwner() == block.getTerminator();
    });
  }
  for (Operation *op : llvm::reverse(behind)) {
    op->dropAllUses();
    op->erase();
  }
  return success();
}

} // namespace mlir::alpa
