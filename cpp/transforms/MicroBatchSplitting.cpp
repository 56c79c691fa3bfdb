//===- MicroBatchSplitting.cpp - The step of one micro-batch --------------===//

#include "cpp/transforms/MicroBatchSplitting.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/StrategyGraph.h"
#include "cpp/transforms/IndependentMicroBatches.h"
#include "cpp/transforms/MicroBatchRewriting.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringExtras.h"
#include <memory>

namespace mlir::alpa {

namespace {

using Arguments = llvm::DenseSet<unsigned>;

int64_t getFirstSize(BlockArgument argument) {
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  return type && type.getRank() > 0 ? type.getDimSize(0) : 0;
}

/// Chooses the arguments that are cut.
class Choosing {
public:
  Choosing(func::FuncOp function, const MicroBatchOptions &options)
      : function(function), options(options) {}

  /// Where parts of the arguments do not do, what is made of the whole batch
  /// in front of the model is cut instead: examples in another order, slices.
  /// Only then what looks like state.
  FailureOr<std::unique_ptr<MicroBatchStates>> run() {
    if (failed(checkGiven())) {
      return failure();
    }
    std::unique_ptr<MicroBatchStates> found, why;
    for (auto [hasState, cuts] : {std::pair(false, false),
                                  {false, true},
                                  {true, false},
                                  {true, true}}) {
      if (hasState && !options.batch.empty()) {
        break;
      }
      cutsMade = cuts;
      best.reset();
      refused.reset();
      chosen.clear();
      std::unique_ptr<MicroBatchStates> reason;
      auto states =
          options.batch.empty() ? search(hasState, reason) : take(reason);
      if (states && (!found || getWork(*found) < getWork(*states))) {
        found = std::move(states);
      }
      bool isDivided = found && found->getSplitFlops() > 0;
      bool isAll = isDivided && (cuts || found->getLateFlops() == 0);
      if (hasState ? isDivided : isAll && found->hasParts()) {
        break;
      }
      if (!cuts && !why) {
        why = std::move(reason);
      }
    }
    if (found) {
      return found;
    }
    return why ? refuseMicroBatches(*why) : refuseSizes();
  }

private:
  std::unique_ptr<MicroBatchStates> analyze(const Arguments &split) {
    return std::make_unique<MicroBatchStates>(function, options.numMicroBatches,
                                              split, cutsMade);
  }

  bool divides(BlockArgument argument) const {
    int64_t size = getFirstSize(argument);
    return size > 0 && size % options.numMicroBatches == 0;
  }

  LogicalResult checkGiven() {
    for (int64_t index : options.batch) {
      BlockArgument argument = function.getArgument(index);
      if (!divides(argument)) {
        return emitError(argument.getLoc())
               << "batch " << getReadableName(argument) << " of type "
               << argument.getType() << " does not divide into "
               << options.numMicroBatches
               << " micro-batches along dimension 0: pass another number, or "
                  "leave it out of batch_argnums";
      }
    }
    return success();
  }

  /// Cuts the given arguments; null, and why, if they cannot be.
  std::unique_ptr<MicroBatchStates>
  take(std::unique_ptr<MicroBatchStates> &reason) {
    auto states =
        analyze(Arguments(options.batch.begin(), options.batch.end()));
    if (states->getRefused()) {
      reason = std::move(states);
      return nullptr;
    }
    return dividesWork(*states) ? std::move(states) : nullptr;
  }

  using Groups = llvm::MapVector<int64_t, SmallVector<unsigned>>;

  bool isState(unsigned index) {
    return function.getArgAttr(index, kAliasAttrName) != nullptr;
  }

  bool hasGradients() {
    Block &block = function.getBody().front();
    return llvm::any_of(block,
                        [](Operation &op) { return isGradientBarrier(&op); });
  }

  /// Arguments that can be cut, by their size along dimension 0.
  Groups getGroups(bool hasState) {
    Groups groups;
    for (BlockArgument argument : function.getArguments()) {
      unsigned index = argument.getArgNumber();
      if (divides(argument) && isState(index) == hasState) {
        groups[getFirstSize(argument)].push_back(index);
      }
    }
    return groups;
  }

  /// First the size that divides the most work, then every other that lets more
  /// be cut. What looks like state is no batch, unless nothing else is one: of
  /// a batch that cannot be cut, parts of parameters would repeat the work.
  /// Null, and why, if there is nothing to cut.
  std::unique_ptr<MicroBatchStates>
  search(bool allowsState, std::unique_ptr<MicroBatchStates> &reason) {
    for (bool hasState : {false, true}) {
      if (hasState && !allowsState) {
        break;
      }
      Groups groups = getGroups(hasState);
      chooseFirst(groups);
      if (best) {
        addOthers(groups);
      }
      if (!hasState) {
        reason = std::move(refused);
      }
      if (best && best->hasParts()) {
        break;
      }
      if (!hasState && reason && reason->hasParts() && hasGradients()) {
        break;
      }
    }
    if (best && dividesWork(*best) &&
        !((reason || cutsMade) && repeatsWork(*best))) {
      return std::move(best);
    }
    return nullptr;
  }

  void chooseFirst(Groups &groups) {
    for (auto &[size, members] : llvm::reverse(groups)) {
      if (!consider(Arguments(members.begin(), members.end()))) {
        considerEach(members);
      }
    }
    if (best && refused && isBatch(*refused) && !isBatch(*best)) {
      // Not the batch, which cannot be cut.
      best.reset();
    }
  }

  /// False if the arguments cannot be cut together.
  bool consider(const Arguments &split, bool needsParts = false) {
    auto states = analyze(split);
    if (states->getRefused()) {
      if (!refused || getWork(*refused) < getWork(*states)) {
        refused = std::move(states);
      }
      return false;
    }
    bool isCut = needsParts ? states->hasParts() : states->getSplitBytes() > 0;
    if (isCut && (!best || getWork(*best) < getWork(*states))) {
      best = std::move(states);
      chosen = split;
    }
    return true;
  }

  /// A matrix may have as many rows as there are examples, and be in the way:
  /// each argument is cut alone, and then the others with the best.
  void considerEach(ArrayRef<unsigned> members) {
    if (members.size() == 1) {
      return;
    }
    for (unsigned member : members) {
      consider(Arguments({member}), /*needsParts=*/true);
    }
    for (unsigned member : members) {
      Groups other;
      other[0].push_back(member);
      if (best) {
        addOthers(other);
      }
    }
  }

  /// False if gradients take products of which every micro-batch would make
  /// all: examples that are put side by side, or looked at one by one.
  static bool dividesWork(const MicroBatchStates &states) {
    return states.getSplitFlops() + states.getSummandFlops() > 0 ||
           states.getGradientFlops() == 0;
  }

  /// Whether most products are made as a whole by every micro-batch. Each turn
  /// of a loop is counted once.
  bool repeatsWork(const MicroBatchStates &states) {
    double flops = 0;
    function.walk([&](Operation *op) {
      if (!isa<DataFlowOpInterface>(op)) {
        flops += getProductFlops(op);
      }
    });
    double once = states.getSplitFlops() + states.getSummandFlops() +
                  states.getLateFlops();
    return 2 * once < flops;
  }

  /// Whether examples are what is cut: some values have parts, and products
  /// are divided.
  static bool isBatch(const MicroBatchStates &states) {
    return states.hasParts() && states.getSplitFlops() > 0;
  }

  void addOthers(Groups &groups) {
    for (auto &[size, members] : groups) {
      Arguments split = chosen;
      split.insert(members.begin(), members.end());
      if (split.size() == chosen.size()) {
        continue;
      }
      auto states = analyze(split);
      if (!states->getRefused() &&
          states->getSplitFlops() >= best->getSplitFlops() &&
          states->getWholeBytes() < best->getWholeBytes()) {
        best = std::move(states);
        chosen = split;
      }
    }
  }

  /// To cut what products sum over makes parts of nothing.
  static std::tuple<bool, double, double>
  getWork(const MicroBatchStates &states) {
    return {states.hasParts(), states.getSplitFlops() - states.getLateFlops(),
            states.getSplitBytes()};
  }

  LogicalResult refuseSizes() {
    InFlightDiagnostic error = emitError(function.getLoc())
                               << "no argument can be cut into "
                               << options.numMicroBatches
                               << " micro-batches; sizes along dimension 0 are";
    unsigned shown = 0;
    bool hasDivided = false;
    for (BlockArgument argument : function.getArguments()) {
      if (isState(argument.getArgNumber()) || getFirstSize(argument) <= 0) {
        continue;
      }
      hasDivided |= divides(argument);
      if (shown++ < 8) {
        error << (shown == 1 ? " " : ", ") << getReadableName(argument) << " "
              << getFirstSize(argument);
      }
    }
    if (!hasDivided) {
      return error << (shown == 0 ? " none" : "")
                   << ": pass a number that divides the batch";
    }
    return error << ", but nothing that is computed is cut with those that "
                    "divide (a loop over examples takes all of them): use "
                    "num_micro_batches=1, or micro_batches=\"independent\" to "
                    "compute it per micro-batch";
  }

  func::FuncOp function;
  const MicroBatchOptions &options;
  std::unique_ptr<MicroBatchStates> best, refused;
  Arguments chosen;
  /// See `MicroBatchStates`.
  bool cutsMade = false;
};

/// Values that are made from arguments, those that are state left out or not.
llvm::DenseSet<Value> getDependents(func::FuncOp function, bool hasState) {
  Block &block = function.getBody().front();
  llvm::DenseSet<Value> values;
  for (BlockArgument argument : block.getArguments()) {
    if (hasState ||
        !function.getArgAttr(argument.getArgNumber(), kAliasAttrName)) {
      values.insert(argument);
    }
  }
  addDependents(block, values);
  return values;
}

/// What is made of the batch where nothing says which argument that is. What
/// looks like state is no batch, unless no result is made of anything else:
/// activations that go in and come out have one type.
llvm::DenseSet<Value> getDependentsOfBatch(func::FuncOp function) {
  llvm::DenseSet<Value> values = getDependents(function, /*hasState=*/false);
  auto results = function.getBody().front().getTerminator()->getOperands();
  bool isMade = llvm::any_of(results, [&](Value result) {
    return result.getDefiningOp() && values.contains(result);
  });
  return isMade ? values : getDependents(function, /*hasState=*/true);
}

/// With one micro-batch the differentiated function ends at the barrier of
/// gradients; a function that has none ends with its results.
void joinOne(func::FuncOp function) {
  Block &block = function.getBody().front();
  llvm::DenseSet<Value> behind;
  SmallVector<Operation *> barriers;
  for (Operation &op : block) {
    if (isGradientBarrier(&op)) {
      barriers.push_back(&op);
      behind.insert(op.result_begin(), op.result_end());
    }
  }
  addDependents(block, behind);
  llvm::DenseSet<Value> made = getDependents(function, /*hasState=*/true);
  OpBuilder builder(function.getContext());
  auto join = [&](Value value) -> Value {
    if (!value.getDefiningOp() || !isa<RankedTensorType>(value.getType()) ||
        !made.contains(value)) {
      return value;
    }
    return AccumulateOp::create(builder, value.getLoc(), value);
  };
  for (Operation *barrier : barriers) {
    builder.setInsertionPoint(barrier);
    for (auto [operand, result] :
         llvm::zip(barrier->getOperands(), barrier->getResults())) {
      result.replaceAllUsesWith(result.use_empty() ? operand : join(operand));
      behind.erase(result);
    }
    barrier->erase();
  }
  llvm::DenseSet<Value> ofBatch =
      barriers.empty() ? getDependentsOfBatch(function)
                       : getDependents(function, /*hasState=*/false);
  DenseMap<Value, Value> joined;
  Operation *end = block.getTerminator();
  builder.setInsertionPoint(end);
  for (OpOperand &operand : end->getOpOperands()) {
    Value value = operand.get();
    if (behind.contains(value) || !ofBatch.contains(value) ||
        value.getDefiningOp<AccumulateOp>()) {
      continue;
    }
    Value &sum = joined[value];
    if (!sum) {
      sum = join(value);
    }
    operand.set(sum);
  }
}

/// So many names are listed, the others counted.
constexpr size_t kListedNames = 6;

std::string list(ArrayRef<std::string> names) {
  std::string text =
      llvm::join(names.take_front(kListedNames), std::string(", "));
  if (names.size() > kListedNames) {
    text += " and " + std::to_string(names.size() - kListedNames) + " more";
  }
  return names.empty() ? "none" : text;
}

bool hasProducts(func::FuncOp function) {
  Block &block = function.getBody().front();
  return llvm::any_of(block,
                      [](Operation &op) { return getProductFlops(&op) > 0; });
}

/// Says which arguments are cut, and how results are joined.
void remarkOn(func::FuncOp function, int64_t numMicroBatches, bool isDivided) {
  SmallVector<std::string> cut, whole, added, collected;
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (function.getArgAttr(index, kBatchAttrName)) {
      cut.push_back(getReadableName(argument));
    } else if (!function.getArgAttr(index, kAliasAttrName) &&
               !function.getArgAttr(index, kMicroBatchAttrName)) {
      whole.push_back(getReadableName(argument));
    }
  }
  Operation *end = function.getBody().front().getTerminator();
  for (OpOperand &operand : end->getOpOperands()) {
    auto join = operand.get().getDefiningOp<AccumulateOp>();
    if (!join) {
      continue;
    }
    unsigned index = operand.getOperandNumber();
    auto name =
        function.getResultAttrOfType<StringAttr>(index, "jax.result_info");
    int8_t entry = getRow(getOperandSharding(join->getOpOperand(0)), 1).front();
    (entry >= 0 ? collected : added)
        .push_back(name ? name.str() : "result " + std::to_string(index));
  }
  emitRemark(function.getLoc())
      << numMicroBatches
      << " micro-batches: cut along dimension 0: " << list(cut)
      << "; whole for each: " << list(whole)
      << "; results that are added up: " << list(added)
      << "; put side by side: " << list(collected);
  if (!isDivided && hasProducts(function)) {
    emitRemark(function.getLoc())
        << "no product is divided among the " << numMicroBatches
        << " micro-batches, which take no less memory or time: use "
           "num_micro_batches=1";
  }
}

} // namespace

void eraseUnused(Block &block) {
  auto operations =
      llvm::to_vector(llvm::make_pointer_range(block.without_terminator()));
  for (Operation *op : llvm::reverse(operations)) {
    if (op->use_empty() && isClonable(op)) {
      op->erase();
    }
  }
}

LogicalResult splitMicroBatches(func::FuncOp function,
                                const MicroBatchOptions &options) {
  for (int64_t index : options.batch) {
    if (index < 0 || index >= function.getNumArguments()) {
      return function.emitOpError()
             << "batch argument " << index << " is none of the "
             << function.getNumArguments();
    }
  }
  if (options.numMicroBatches == 1) {
    joinOne(function);
    eraseUnused(function.getBody().front());
    if (options.isIndependent) {
      // The one of a part of the batch: what is made of it is not made again
      // for the next part.
      for (int64_t index : options.batch) {
        function.setArgAttr(
            index, kBatchAttrName,
            IntegerAttr::get(IntegerType::get(function.getContext(), 64),
                             index));
      }
    }
    return success();
  }
  if (options.isIndependent) {
    return joinIndependent(function, options);
  }
  auto states = Choosing(function, options).run();
  if (failed(states)) {
    return failure();
  }
  (*states)->deferSummands();
  MicroBatchRewriting(function, **states).run();
  remarkOn(function, options.numMicroBatches, (*states)->getSplitFlops() > 0);
  MLIRContext *context = function.getContext();
  function->getParentOp()->setAttr(
      kMeshAttrName, MeshAttr::get(context, {StringAttr::get(context, "time")},
                                   {options.numMicroBatches}));
  return success();
}

} // namespace mlir::alpa
