//===- StageSlicing.cpp - The part of a step that one mesh runs -----------===//

#include "cpp/transforms/StageSlicing.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/transforms/Phases.h"
#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/Sharding.h"
#include "mlir/IR/IRMapping.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::alpa {

namespace {

/// Arguments of at most so many bytes are kept wherever they are used instead
/// of drawing operators to one stage. Heuristic.
constexpr double kSmallBytes = 1024;

/// Operators that commute with a sum and only move data.
bool movesData(Operation *op) {
  if (isa<stablehlo::ReshapeOp, stablehlo::TransposeOp>(op)) {
    return true;
  }
  auto pad = dyn_cast<stablehlo::PadOp>(op);
  if (!pad) {
    return false;
  }
  auto constant = pad.getPaddingValue().getDefiningOp<stablehlo::ConstantOp>();
  auto value = constant ? dyn_cast<DenseElementsAttr>(constant.getValue())
                        : DenseElementsAttr();
  return value && value.isSplat() && isa<FloatType>(value.getElementType()) &&
         value.getSplatValue<llvm::APFloat>().isZero();
}

/// True for a part of a tensor, put where it belongs among zeros.
bool placesPart(Operation *op) {
  return isa<stablehlo::PadOp>(op) && movesData(op);
}

/// True for a sum of parts that lie in different places of a tensor of zeros:
/// the gradient of a parameter of which each layer uses a slice.
bool joins(Operation *op) {
  if (!op || !op->hasOneUse()) {
    return false;
  }
  if (isa<stablehlo::AddOp>(op)) {
    return llvm::all_of(op->getOperands(), [](Value operand) {
      return joins(operand.getDefiningOp());
    });
  }
  return placesPart(op);
}

} // namespace

StageSlicing::StageSlicing(func::FuncOp function,
                           ArrayRef<int64_t> stageOfLayer, bool lastMakesFree)
    : function(function), block(function.getBody().front()),
      stageOfLayer(stageOfLayer), lastMakesFree(lastMakesFree) {
  for (int64_t stage : stageOfLayer) {
    numStages = std::max(numStages, stage + 1);
  }
}

LogicalResult StageSlicing::run() {
  if (failed(placeComputed())) {
    return failure();
  }
  splitSums();
  placeApplied();
  placeOutputs();
  numberApplyPhases();
  numberTransfers();
  markOnce();
  return success();
}

int64_t StageSlicing::getComputeStage(Operation *op) const {
  auto layer = op->getAttrOfType<IntegerAttr>(kLayerAttrName);
  return layer ? stageOfLayer[layer.getInt()] : -1;
}

LogicalResult StageSlicing::placeComputed() {
  for (Operation &op : block) {
    auto layer = op.getAttrOfType<IntegerAttr>(kLayerAttrName);
    if (!layer) {
      continue;
    }
    if (layer.getInt() < 0 ||
        layer.getInt() >= static_cast<int64_t>(stageOfLayer.size())) {
      return op.emitOpError()
             << "belongs to layer " << layer.getInt() << ", stages are given "
             << "for " << stageOfLayer.size() << " layers";
    }
    int64_t stage = getComputeStage(&op);
    stages[&op] = stage;
    forEachUsedValue(&op, [&](Value value) {
      if (isa<BlockArgument>(value) &&
          getTensorBytes(value.getType()) > kSmallBytes) {
        auto [owner, isNew] = owners.try_emplace(value, stage);
        owner->second = std::min(owner->second, stage);
      }
    });
  }
  // A part of a parameter is cut out where the parameter is, so that only the
  // part crosses to the stage that needs it; unless a later stage says which.
  for (auto &[op, stage] : stages) {
    if (!isa<stablehlo::SliceOp, stablehlo::DynamicSliceOp>(op) ||
        getPhase(op) != kForwardPhase) {
      continue;
    }
    auto owner = owners.find(op->getOperand(0));
    bool isKnown =
        owner != owners.end() &&
        llvm::all_of(op->getOperands().drop_front(), [&](Value index) {
          return getStage(index) <= owner->second;
        });
    if (isKnown) {
      stage = owner->second;
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Sums over stages
//===----------------------------------------------------------------------===//

bool StageSlicing::spansStages(Value value) const {
  int64_t first = -1;
  SmallVector<Value> work = {value};
  while (!work.empty()) {
    Operation *maker = work.pop_back_val().getDefiningOp();
    if (!maker || getPhase(maker) < 0) {
      continue;
    }
    bool isOpen = maker->hasOneUse() &&
                  (isa<stablehlo::AddOp>(maker) || movesData(maker));
    if (isOpen) {
      for (Value operand : maker->getOperands()) {
        work.push_back(operand);
      }
      continue;
    }
    int64_t stage = getComputeStage(maker);
    if (first >= 0 && stage >= 0 && stage != first) {
      return true;
    }
    first = std::max(first, stage);
  }
  return false;
}

/// Parameters that several stages use have gradients in each. They are summed
/// once per step instead of once per micro-batch.
///
/// before: %2 = add %0, %1        // %0 of stage 0, %1 of stage 1
///         %3 = alpa.accumulate %2
/// after:  %2 = alpa.accumulate %0
///         %3 = alpa.accumulate %1
///         %4 = add %2, %3
void StageSlicing::splitSums() {
  for (auto accumulate :
       llvm::make_early_inc_range(block.getOps<AccumulateOp>())) {
    if (!spansStages(accumulate.getOperand())) {
      continue;
    }
    Value sum = splitSum(accumulate.getOperand(), accumulate);
    accumulate.getResult().replaceAllUsesWith(sum);
    Value operand = accumulate.getOperand();
    stages.erase(accumulate);
    accumulate.erase();
    // The chain behind it was made again on the other side.
    llvm::SetVector<Operation *> dead;
    dead.insert(operand.getDefiningOp());
    while (!dead.empty()) {
      Operation *op = dead.pop_back_val();
      if (!op->use_empty() || !isClonable(op)) {
        continue;
      }
      for (Value used : op->getOperands()) {
        if (Operation *maker = used.getDefiningOp()) {
          dead.insert(maker);
        }
      }
      stages.erase(op);
      op->erase();
    }
  }
}

Value StageSlicing::splitSum(Value value, Operation *accumulate) {
  OpBuilder builder(accumulate);
  Operation *maker = value.getDefiningOp();
  bool isOpen =
      maker && maker->hasOneUse() && getPhase(maker) >= 0 &&
      ((isa<stablehlo::AddOp>(maker) && (spansStages(value) || joins(maker))) ||
       movesData(maker));
  if (!isOpen) {
    // Among the sums of its layer, behind which a backend may free what the
    // gradient is made of.
    if (maker) {
      builder.setInsertionPointAfter(maker);
    }
    auto sum = AccumulateOp::create(builder, value.getLoc(), value);
    sum->setDiscardableAttrs(accumulate->getDiscardableAttrDictionary());
    if (maker && maker->hasAttr(kLayerAttrName)) {
      sum->setAttr(kLayerAttrName, maker->getAttr(kLayerAttrName));
      setPhase(sum, getPhase(maker));
    }
    stages[sum] = getComputeStage(sum);
    return sum;
  }
  IRMapping mapping;
  for (auto [index, operand] : llvm::enumerate(maker->getOperands())) {
    bool isSummed = isa<stablehlo::AddOp>(maker) || index == 0;
    if (isSummed && !mapping.contains(operand)) {
      mapping.map(operand, splitSum(operand, accumulate));
    }
  }
  builder.setInsertionPoint(accumulate);
  Operation *copy = builder.clone(*maker, mapping);
  copy->removeAttr(kLayerAttrName);
  setPhase(copy, kApplyPhase);
  return copy->getResult(0);
}

//===----------------------------------------------------------------------===//
// Placing what runs once per step
//===----------------------------------------------------------------------===//

int64_t StageSlicing::getStage(Value value) const {
  if (Operation *maker = value.getDefiningOp()) {
    auto stage = stages.find(maker);
    return stage == stages.end() ? -1 : stage->second;
  }
  auto owner = owners.find(value);
  return owner == owners.end() ? -1 : owner->second;
}

/// An operator runs where most of its operands' bytes are, the first stage of
/// several. One that depends on nothing that a stage has made is free: it is
/// made again by every user; so is one that spreads a scalar.
void StageSlicing::placeApplied() {
  // Where most of what a free operator uses is.
  DenseMap<Value, int64_t> leanings;
  // Parts of a tensor that stages have made, put together. They are small and
  // it is large: it is free, and leans to the first stage, which keeps the
  // parameter.
  llvm::DenseSet<Value> joined;
  auto isJoined = [&](Value value) { return joined.contains(value); };
  auto getLeaning = [&](Value value) {
    auto leaning = leanings.find(value);
    return leaning == leanings.end() ? getStage(value) : leaning->second;
  };
  for (Operation &op : block.without_terminator()) {
    if (getPhase(&op) < kApplyPhase) {
      continue;
    }
    if (isa<stablehlo::AddOp>(op)
            ? llvm::all_of(op.getOperands(), isJoined)
            : placesPart(&op) && getStage(op.getOperand(0)) >= 0) {
      int64_t first = numStages;
      for (Value operand : op.getOperands()) {
        int64_t stage = getLeaning(operand);
        first = stage < 0 ? first : std::min(first, stage);
      }
      joined.insert(op.getResult(0));
      leanings[op.getResult(0)] = first;
      continue;
    }
    SmallVector<double> bytes(numStages, 0);
    bool hasMade = false;
    forEachUsedValue(&op, [&](Value value) {
      int64_t stage = getLeaning(value);
      if (stage >= 0) {
        bytes[stage] += getTensorBytes(value.getType());
        hasMade |= stages.contains(value.getDefiningOp()) || isJoined(value);
      }
    });
    auto best = llvm::max_element(bytes);
    if (isClonable(&op) && *best <= kSmallBytes &&
        llvm::any_of(op.getResults(), [&](Value result) {
          return getTensorBytes(result.getType()) > *best;
        })) {
      continue;
    }
    bool isReduction =
        *best > kSmallBytes && llvm::all_of(op.getResults(), [&](Value result) {
          return getTensorBytes(result.getType()) * 2 <= *best;
        });
    // What shrinks a parameter is made where the parameter is.
    if ((hasMade || isReduction || !isClonable(&op)) && *best > 0) {
      stages[&op] = best - bytes.begin();
    } else if (!isClonable(&op)) {
      stages[&op] = 0;
    } else if (*best > kSmallBytes) {
      for (Value result : op.getResults()) {
        leanings[result] = best - bytes.begin();
      }
    }
  }
}

/// The stage that has made most of what free operators make a value from; -1 if
/// they make it from arguments alone.
int64_t StageSlicing::findMaker(Value value) const {
  int64_t best = -1;
  double most = 0;
  SmallVector<Value> work = {value};
  llvm::DenseSet<Value> seen;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    Operation *maker = next.getDefiningOp();
    if (!maker || !seen.insert(next).second) {
      continue;
    }
    auto stage = stages.find(maker);
    if (stage == stages.end()) {
      forEachUsedValue(maker, [&](Value used) { work.push_back(used); });
      continue;
    }
    double bytes = getTensorBytes(next.getType());
    if (bytes > most || (bytes == most && stage->second < best)) {
      best = stage->second;
      most = bytes;
    }
  }
  return best;
}

/// A result that is made from what stages make has a stage, and so a phase in
/// which all of that is there.
void StageSlicing::placeOutputs() {
  for (Value value : block.getTerminator()->getOperands()) {
    Operation *maker = value.getDefiningOp();
    if (maker && !stages.contains(maker) && getPhase(maker) >= kApplyPhase) {
      if (int64_t stage = findMaker(value); stage >= 0) {
        stages[maker] = stage;
      }
    }
    int64_t stage = getStage(value);
    int64_t any = lastMakesFree && maker ? numStages - 1 : 0;
    outputStages.push_back(stage >= 0 ? stage : any);
  }
}

/// An operator that needs what another stage makes in its n-th phase runs in
/// phase n + 1: every phase can run once it has received all that it needs.
void StageSlicing::numberApplyPhases() {
  for (Operation &op : block.without_terminator()) {
    auto own = stages.find(&op);
    if (own == stages.end() || getPhase(&op) < kApplyPhase) {
      if (getPhase(&op) >= kApplyPhase || getPhase(&op) < 0) {
        op.removeAttr(kPhaseAttrName);
      }
      continue;
    }
    int64_t phase = kApplyPhase;
    // Free operators stand between: look through them.
    SmallVector<Operation *> work = {&op};
    llvm::DenseSet<Operation *> seen;
    while (!work.empty()) {
      forEachUsedValue(work.pop_back_val(), [&](Value value) {
        Operation *maker = value.getDefiningOp();
        if (!maker || !seen.insert(maker).second) {
          return;
        }
        auto stage = stages.find(maker);
        if (stage == stages.end()) {
          work.push_back(maker);
          return;
        }
        // A sum is handed on when its stage begins to apply gradients.
        int64_t made = isJoin(maker) ? kApplyPhase : getPhase(maker);
        if (made >= kApplyPhase) {
          phase =
              std::max(phase, made + (stage->second == own->second ? 0 : 1));
        }
      });
    }
    setPhase(&op, phase);
  }
}

/// Numbers the values that cross from one stage to others, in program order.
void StageSlicing::numberTransfers() {
  llvm::DenseSet<Value> crossing;
  std::function<void(Value, int64_t, llvm::DenseSet<Value> &)> need =
      [&](Value value, int64_t stage, llvm::DenseSet<Value> &seen) {
        Operation *maker = value.getDefiningOp();
        if (!maker || !seen.insert(value).second) {
          return;
        }
        auto own = stages.find(maker);
        if (own == stages.end()) {
          forEachUsedValue(maker, [&](Value used) { need(used, stage, seen); });
        } else if (own->second != stage) {
          crossing.insert(value);
        }
      };
  SmallVector<llvm::DenseSet<Value>> seen(numStages);
  for (auto &[op, stage] : stages) {
    int64_t at = stage;
    forEachUsedValue(op, [&](Value used) { need(used, at, seen[at]); });
  }
  for (auto [value, stage] :
       llvm::zip(block.getTerminator()->getOperands(), outputStages)) {
    need(value, stage, seen[stage]);
  }
  int64_t next = 0;
  for (Operation &op : block) {
    for (Value result : op.getResults()) {
      if (crossing.contains(result)) {
        transfers[result] = next++;
      }
    }
  }
}

/// What crosses between stages and is the same for every micro-batch, a slice
/// of a parameter for example, is made and sent once per step.
void StageSlicing::markOnce() {
  llvm::DenseSet<Value> batchValues;
  for (BlockArgument argument : block.getArguments()) {
    if (function.getArgAttr(argument.getArgNumber(), kBatchAttrName) ||
        function.getArgAttr(argument.getArgNumber(), kMicroBatchAttrName)) {
      batchValues.insert(argument);
    }
  }
  addDependents(block, batchValues);
  SmallVector<Operation *> work;
  for (Operation &op : block.without_terminator()) {
    if (getPhase(&op) == kForwardPhase && !isJoin(&op) &&
        llvm::any_of(op.getResults(), [&](Value result) {
          return transfers.contains(result) && !batchValues.contains(result);
        })) {
      work.push_back(&op);
    }
  }
  auto once = UnitAttr::get(function.getContext());
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (op->hasAttr(kOnceAttrName)) {
      continue;
    }
    op->setAttr(kOnceAttrName, once);
    forEachUsedValue(op, [&](Value value) {
      Operation *maker = value.getDefiningOp();
      if (maker && getPhase(maker) == kForwardPhase) {
        work.push_back(maker);
      }
    });
  }
}

bool StageSlicing::crossesOnce(Value value) const {
  Operation *maker = value.getDefiningOp();
  return maker && (isJoin(maker) || runsOnce(maker));
}

} // namespace mlir::alpa
