//===- PhaseSplitting.cpp - The programs of a planned stage ---------------===//

#include "cpp/transforms/PhaseSplitting.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/Materialization.h"
#include "cpp/analysis/OperatorShardings.h"
#include "cpp/analysis/Schedule.h"
#include "cpp/transforms/ComparedAgain.h"
#include "cpp/transforms/PhaseFunction.h"
#include "cpp/transforms/Phases.h"
#include "cpp/transforms/ReferencedFunctions.h"
#include "cpp/transforms/SpreadValues.h"
#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/Sharding.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/DenseSet.h"
#include <map>

namespace mlir::alpa {

namespace {

class PhaseSplitting {
public:
  PhaseSplitting(ModuleOp module, func::FuncOp function, bool splitBackward)
      : module(module), function(function), block(function.getBody().front()),
        context(function.getContext()), splitBackward(splitBackward),
        memory(function, [](BlockArgument) { return false; },
               {.savesTime = false}),
        spread(findSpreadValues(block)) {}

  void run() {
    placeOperators();
    if (splitBackward) {
      delayWeightGradients();
    }
    keepCompared();
    numberLocals();
    for (Operation &op : block) {
      if (auto group = op.getAttrOfType<IntegerAttr>(kBarrierAttrName)) {
        numBarriers = std::max(numBarriers, group.getInt() + 1);
      }
    }
    // A phase may do nothing but hand on sums.
    for (Value value : block.getTerminator()->getOperands()) {
      addOrder(getOutputOrder(value));
    }
    OpBuilder builder(context);
    builder.setInsertionPointAfter(function);
    for (int64_t order : orders) {
      extract(builder, order);
    }
  }

private:
  using Kind = PhaseFunction::Kind;

  /// Phases in the order in which they run: prepare -1, forward 0, backward 1,
  /// backward_weight 2, apply_k 3 + k.
  static int64_t getOrder(int64_t phase) {
    return phase < kApplyPhase ? phase : phase + 1;
  }
  static constexpr int64_t kPrepareOrder = -1;
  static constexpr int64_t kBackwardOrder = 1;
  static constexpr int64_t kWeightOrder = 2;

  static std::string getName(int64_t order) {
    switch (order) {
    case kPrepareOrder:
      return "prepare";
    case 0:
      return "forward";
    case 1:
      return "backward";
    case kWeightOrder:
      return "backward_weight";
    default:
      return "apply_" + std::to_string(order - kWeightOrder - 1);
    }
  }

  /// Operators without a phase depend on constants and arguments alone, and are
  /// made again in every phase; or the planner has inserted them, and they run
  /// right before the first phase that needs them.
  void placeOperators() {
    SmallVector<Operation *> inserted;
    for (Operation &op : block.without_terminator()) {
      int64_t phase = getPhase(&op);
      if (phase >= 0) {
        place(&op, op.hasAttr(kOnceAttrName) ? kPrepareOrder : getOrder(phase));
      } else if (!isClonable(&op) || usesPlaced(&op)) {
        inserted.push_back(&op);
        placed[&op] = 0;
      }
    }
    for (Operation *op : llvm::reverse(inserted)) {
      placed[op] = getFirstUse(op);
    }
    for (Operation *op : inserted) {
      int64_t order = placed[op];
      forEachUsedValue(op, [&](Value value) {
        if (Operation *maker = getMaker(value)) {
          order = std::max(order, getResultOrder(maker));
        }
      });
      place(op, order);
    }
  }

  bool usesPlaced(Operation *op) const {
    bool uses = false;
    forEachUsedValue(op,
                     [&](Value value) { uses |= getMaker(value) != nullptr; });
    return uses;
  }

  /// The phase in which the results of an operator are there: a sum over the
  /// micro-batches is only there once the step's gradients are applied.
  int64_t getResultOrder(Operation *op) const {
    int64_t order = placed.lookup(op);
    return isJoin(op) ? std::max(order, getOrder(kApplyPhase)) : order;
  }

  int64_t getFirstUse(Operation *op) {
    int64_t first = std::numeric_limits<int64_t>::max();
    for (OpOperand &use : op->getUses()) {
      auto it = placed.find(block.findAncestorOpInBlock(*use.getOwner()));
      if (it != placed.end()) {
        first = std::min(first, it->second);
      } else if (use.getOwner() == block.getTerminator() &&
                 function.getResultAttr(use.getOperandNumber(),
                                        kOnceAttrName)) {
        // Other stages wait for it once, not once per micro-batch.
        first = kPrepareOrder;
      }
    }
    return first == std::numeric_limits<int64_t>::max() ? 0 : first;
  }

  void place(Operation *op, int64_t order) {
    placed[op] = order;
    addOrder(order);
  }

  void addOrder(int64_t order) {
    if (!llvm::is_contained(orders, order)) {
      orders.insert(llvm::lower_bound(orders, order), order);
    }
  }

  /// Of the backward phase only what other stages wait for runs at once. For
  /// the norm of all gradients they wait until the last micro-batch is through.
  void delayWeightGradients() {
    llvm::DenseSet<Operation *> urgent;
    SmallVector<Operation *> work;
    Operation *terminator = block.getTerminator();
    for (auto [index, value] : llvm::enumerate(terminator->getOperands())) {
      Operation *maker = getMaker(value);
      if (maker && getResultOrder(maker) <= kBackwardOrder &&
          function.getResultAttr(index, kTransferAttrName)) {
        work.push_back(maker);
      }
    }
    while (!work.empty()) {
      Operation *op = work.pop_back_val();
      if (!urgent.insert(op).second) {
        continue;
      }
      forEachUsedValue(op, [&](Value value) {
        if (Operation *maker = value.getDefiningOp()) {
          work.push_back(maker);
        }
      });
    }
    for (Operation &op : block.without_terminator()) {
      auto it = placed.find(&op);
      if (it != placed.end() && it->second == kBackwardOrder &&
          !urgent.contains(&op)) {
        place(&op, kWeightOrder);
      }
    }
    llvm::erase_if(orders, [&](int64_t order) {
      return llvm::none_of(placed,
                           [&](auto &entry) { return entry.second == order; });
    });
  }

  /// The operator whose phase makes a value; null for arguments and for what is
  /// made again.
  Operation *getMaker(Value value) const {
    Operation *maker = value.getDefiningOp();
    return maker && placed.contains(maker) ? maker : nullptr;
  }

  /// True if a phase makes a value again that an earlier one has made: what
  /// does not lie in memory while a step runs as one program is not put there
  /// because it runs as several.
  bool isMadeAgain(Value value, int64_t order) const {
    Operation *maker = getMaker(value);
    if (!maker) {
      return true;
    }
    int64_t made = placed.lookup(maker);
    return made >= 0 && made < order && order <= kWeightOrder &&
           !isa<ReshardOp, stablehlo::OptimizationBarrierOp>(maker) &&
           !isJoin(maker) && maker->getNumRegions() == 0 && isClonable(maker) &&
           !memory.isStored(value) && !compared.contains(maker);
  }

  Origin getOrigin(Value value, int64_t order) const {
    Operation *maker = getMaker(value);
    if (!maker) {
      return Origin::kOutside;
    }
    if (placed.lookup(maker) == order) {
      return Origin::kOwn;
    }
    return isMadeAgain(value, order) ? Origin::kAgain : Origin::kKept;
  }

  /// What is compared is not made again where that would be rounded otherwise
  /// than what it is compared with: the comparison is kept, or, where a phase
  /// itself compares, as rules for gradients of a user's own do, its operands.
  void keepCompared() {
    for (Operation &op : llvm::reverse(block)) {
      auto place = placed.find(&op);
      if (place == placed.end() || !comparesFloats(&op)) {
        continue;
      }
      for (int64_t order : {kBackwardOrder, kWeightOrder}) {
        SmallVector<Operation *> found = findComparedAgain(
            &op, [&](Value value) { return getOrigin(value, order); });
        if (place->second == order) {
          compared.insert(found.begin(), found.end());
        } else if (place->second < order && !found.empty()) {
          compared.insert(&op);
        }
      }
    }
  }

  void numberLocals() {
    llvm::DenseSet<Value> crossing;
    // What a phase needs is looked at once, however many operators need it.
    DenseMap<int64_t, llvm::DenseSet<Value>> needed;
    for (auto &[op, order] : placed) {
      SmallVector<Value> work;
      auto need = [&work](Value value) { work.push_back(value); };
      forEachUsedValue(op, need);
      while (!work.empty()) {
        Value used = work.pop_back_val();
        Operation *maker = used.getDefiningOp();
        if (!maker || !needed[order].insert(used).second) {
          continue;
        }
        if (isMadeAgain(used, order)) {
          forEachUsedValue(maker, need);
        } else if (placed.lookup(maker) != order && !isJoin(maker)) {
          crossing.insert(used);
        }
      }
    }
    for (Operation &op : block) {
      for (Value result : op.getResults()) {
        if (crossing.contains(result)) {
          locals[result] = numLocals++;
        }
      }
      if (isJoin(&op)) {
        accumulators[op.getResult(0)] = numAccumulators++;
      }
    }
  }

  int64_t getNumMicroBatches() const {
    auto count = function->getAttrOfType<IntegerAttr>(kMicroBatchesAttrName);
    return count ? count.getInt() : 1;
  }

  /// An operator that the phase needs beside those of the stage.
  Value withPlan(Operation *op, ArrayRef<ShardingAttr> operands,
                 ShardingAttr result) const {
    auto mesh = module->getAttrOfType<MeshAttr>(kMeshAttrName);
    OperatorRows rows;
    for (ShardingAttr sharding : operands) {
      rows.operands.push_back(getRow(sharding, mesh.getNumAxes()));
    }
    rows.results.push_back(getRow(result, mesh.getNumAxes()));
    setPlan(op, rows, mesh.getSizes());
    return op->getResult(0);
  }

  /// What has been joined so far and what this micro-batch adds to it.
  Value join(PhaseFunction &phase, Operation *op, Value before) const {
    OpBuilder &body = phase.getBuilder();
    ShardingAttr sharding = getSharding(op->getResult(0));
    Value own = phase.lookup(op->getOperand(0));
    auto collect = dyn_cast<CollectOp>(op);
    if (!collect) {
      return withPlan(stablehlo::AddOp::create(body, op->getLoc(), before, own),
                      {sharding, sharding}, sharding);
    }
    return place(body, collect, before, own, phase.lookup(collect.getNumber()));
  }

  /// Writes the part of a micro-batch into what is collected.
  Value place(OpBuilder &body, CollectOp collect, Value before, Value own,
              Value number) const {
    Location loc = collect.getLoc();
    auto type = cast<RankedTensorType>(own.getType());
    ShardingAttr sharding = getSharding(collect.getResult());
    auto scalar = ShardingAttr::get(context, 0, {});
    auto dimension = static_cast<int64_t>(collect.getDimension());
    bool isWide = !llvm::isInt<32>(collect.getType().getDimSize(dimension));
    auto index =
        RankedTensorType::get({}, body.getIntegerType(isWide ? 64 : 32));
    auto getConstant = [&](int64_t value) {
      auto number = DenseElementsAttr::get(
          index, body.getIntegerAttr(index.getElementType(), value));
      return withPlan(stablehlo::ConstantOp::create(body, loc, number), {},
                      scalar);
    };
    Value position =
        withPlan(stablehlo::ConvertOp::create(body, loc, index, number),
                 {scalar}, scalar);
    Value start = withPlan(
        stablehlo::MulOp::create(body, loc, position,
                                 getConstant(type.getDimSize(dimension))),
        {scalar, scalar}, scalar);
    Value zero = getConstant(0);
    SmallVector<Value> starts(type.getRank(), zero);
    starts[dimension] = start;
    SmallVector<ShardingAttr> shardings(starts.size() + 2, scalar);
    shardings[0] = shardings[1] = sharding;
    auto updated = stablehlo::DynamicUpdateSliceOp::create(
        body, loc, before.getType(), before, own, starts);
    return withPlan(updated, shardings, sharding);
  }

  /// What an argument is. Those of a function that no stage was cut from are
  /// the inputs of the step.
  Kind getArgumentKind(BlockArgument argument) {
    unsigned index = argument.getArgNumber();
    for (StringRef kind :
         {StringRef(kInputAttrName), StringRef(kBatchAttrName),
          StringRef(kMicroBatchAttrName), StringRef(kTransferAttrName)}) {
      if (auto number = function.getArgAttrOfType<IntegerAttr>(index, kind)) {
        return {kind, number.getInt()};
      }
    }
    return {kInputAttrName, index};
  }

  Kind getResultKind(unsigned index) {
    for (StringRef kind :
         {StringRef(kOutputAttrName), StringRef(kTransferAttrName)}) {
      if (auto number =
              function.getResultAttrOfType<IntegerAttr>(index, kind)) {
        return {kind, number.getInt()};
      }
    }
    return {kOutputAttrName, index};
  }

  /// Brings a value into a phase: as an argument, or made again.
  void provide(PhaseFunction &phase, Value value, int64_t order) {
    if (phase.contains(value)) {
      return;
    }
    Operation *maker = value.getDefiningOp();
    if (!maker) {
      phase.mapToArgument(value, getArgumentKind(cast<BlockArgument>(value)),
                          getSharding(value));
    } else if (isMadeAgain(value, order)) {
      forEachUsedValue(maker, [&](Value used) { provide(phase, used, order); });
      Operation *copy = phase.clone(*maker);
      if (placed.contains(maker)) {
        setPhase(copy, std::min(order, kBackwardOrder));
      }
    } else if (auto sum = accumulators.find(value); sum != accumulators.end()) {
      phase.mapToArgument(value, {kAccumulatorAttrName, sum->second},
                          getSharding(value));
    } else {
      phase.mapToArgument(value, {kLocalAttrName, locals.lookup(value)},
                          getSharding(value));
    }
  }

  /// Copies an operator of a phase, and returns what other phases need of it.
  void copy(PhaseFunction &phase, Operation &op, int64_t order) {
    forEachUsedValue(&op, [&](Value value) { provide(phase, value, order); });
    if (isJoin(&op)) {
      Value result = op.getResult(0);
      ShardingAttr sharding = getSharding(result);
      Kind kind{kAccumulatorAttrName, accumulators.lookup(result)};
      Value own = phase.lookup(op.getOperand(0));
      if (isa<CollectOp>(op) || getNumMicroBatches() > 1) {
        own = join(phase, &op, phase.addArgument(result, kind, sharding));
      }
      phase.addResult(own, kind, sharding);
      if (isa<AccumulateOp>(op)) {
        sums.emplace_back(own, sharding);
      }
      return;
    }
    phase.clone(op);
    for (Value result : op.getResults()) {
      if (auto number = locals.find(result); number != locals.end()) {
        phase.addResult(phase.lookup(result), {kLocalAttrName, number->second},
                        getSharding(result));
      }
    }
  }

  /// An operator that no later one is placed before.
  Value addBarrier(PhaseFunction &phase, Value value, ShardingAttr sharding) {
    auto barrier = stablehlo::OptimizationBarrierOp::create(
        phase.getBuilder(), value.getLoc(), value.getType(), value);
    barrier->setAttr(
        kBarrierAttrName,
        IntegerAttr::get(IntegerType::get(context, 64), numBarriers));
    return withPlan(barrier, {sharding}, sharding);
  }

  /// Where the backward phase comes to a lower layer: what that layer takes
  /// waits for the sums of the gradients of those behind it. A backend that
  /// puts off what nothing waits for would keep the operands of all products
  /// that make gradients, what was computed again for them included.
  void endLayer(PhaseFunction &phase, Operation &next) {
    if (!beginsLayer(&next, lastLayer)) {
      return;
    }
    SmallVector<Value> taken =
        llvm::to_vector(llvm::make_filter_range(made, [&](Value value) {
          // Fusions compute that again, and nothing has to wait for it.
          if (spread.contains(value)) {
            return false;
          }
          return llvm::any_of(value.getUsers(), [&](Operation *user) {
            Operation *inBlock = block.findAncestorOpInBlock(*user);
            auto own = placed.find(inBlock);
            return own != placed.end() && own->second == kBackwardOrder &&
                   !isJoin(inBlock) && !inBlock->isBeforeInBlock(&next);
          });
        }));
    if (taken.empty() || sums.empty()) {
      return;
    }
    for (Value value : taken) {
      phase.map(value,
                addBarrier(phase, phase.lookup(value), getSharding(value)));
    }
    for (auto [sum, sharding] : sums) {
      phase.replaceResult(sum, addBarrier(phase, sum, sharding));
    }
    ++numBarriers;
    sums.clear();
    made = taken;
  }

  /// One phase as a module with a function `main`.
  void extract(OpBuilder &builder, int64_t order) {
    PhaseFunction phase(builder, module, function.getLoc(), getName(order));
    sums.clear();
    for (Operation &op : block.without_terminator()) {
      auto own = placed.find(&op);
      if (own == placed.end() || own->second != order) {
        continue;
      }
      if (order == kBackwardOrder) {
        endLayer(phase, op);
      }
      copy(phase, op, order);
      if (order == kBackwardOrder) {
        llvm::append_range(made, op.getResults());
      }
    }
    for (OpOperand &operand : block.getTerminator()->getOpOperands()) {
      if (getOutputOrder(operand.get()) == order) {
        unsigned index = operand.getOperandNumber();
        provide(phase, operand.get(), order);
        phase.addResult(phase.lookup(operand.get()), getResultKind(index),
                        function.getResultAttrOfType<ShardingAttr>(
                            index, kShardingAttrName));
      }
    }
    copyReferencedFunctions(module, phase.getModule());
    phase.finish();
  }

  /// The phase that returns a value of the stage: the one that makes it. What
  /// no phase makes is returned once per step, behind the micro-batches.
  int64_t getOutputOrder(Value value) const {
    if (Operation *maker = getMaker(value)) {
      return getResultOrder(maker);
    }
    const auto *apply = llvm::lower_bound(orders, getOrder(kApplyPhase));
    return apply == orders.end() ? getOrder(kApplyPhase) : *apply;
  }

  ModuleOp module;
  func::FuncOp function;
  Block &block;
  MLIRContext *context;
  bool splitBackward;
  SmallVector<int64_t> orders;
  DenseMap<Operation *, int64_t> placed;
  DenseMap<Value, int64_t> locals, accumulators;
  /// Of the layer whose backward phase is being copied: what its operators
  /// make, and the sums of its gradients.
  SmallVector<Value> made;
  SmallVector<std::pair<Value, ShardingAttr>> sums;
  std::optional<int64_t> lastLayer;
  /// Of the function as one program.
  Materialization memory;
  /// See `keepCompared`.
  llvm::DenseSet<Operation *> compared;
  /// See SpreadValues.h.
  llvm::DenseSet<Value> spread;
  int64_t numBarriers = 0;
  int64_t numLocals = 0;
  int64_t numAccumulators = 0;
};

} // namespace

void splitPhases(ModuleOp module, func::FuncOp function, bool splitBackward) {
  PhaseSplitting(module, function, splitBackward).run();
}

} // namespace mlir::alpa
