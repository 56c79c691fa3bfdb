//===- MicroBatchChoice.cpp - The arguments that are cut ------------------===//

#include "cpp/transforms/MicroBatchChoice.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/StrategyGraph.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

static int64_t getFirstSize(BlockArgument argument) {
  auto type = dyn_cast<RankedTensorType>(argument.getType());
  return type && type.getRank() > 0 ? type.getDimSize(0) : 0;
}

/// False if gradients take products of which every micro-batch would make all,
/// and that are most of the work: examples that are put side by side, or looked
/// at one by one. Products of parameters alone may be less than what a vector
/// of them does to all examples.
static bool dividesWork(const MicroBatchStates &states) {
  return states.getSplitFlops() + states.getSummandFlops() > 0 ||
         states.getGradientFlops() <= states.getAllSplitFlops();
}

/// Whether examples are what is cut: some values have parts, and products are
/// divided.
static bool isBatch(const MicroBatchStates &states) {
  return states.hasParts() && states.getSplitFlops() > 0;
}

/// To cut what products sum over makes parts of nothing.
static std::tuple<bool, double, double>
getWork(const MicroBatchStates &states) {
  return {states.hasParts(), states.getSplitFlops() - states.getLateFlops(),
          states.getSplitBytes()};
}

/// Where the whole batch is needed in what is differentiated, that says more
/// than where it is in gradients: those of targets alone need all examples.
static std::tuple<bool, bool, std::tuple<bool, double, double>>
getClarity(const MicroBatchStates &states) {
  bool isForward = !isGradient(states.getCause(states.getRefused()));
  return {states.hasParts(), isForward, getWork(states)};
}

bool goesThroughBatch(func::FuncOp function) {
  return llvm::any_of(function.getBody().front(), [](Operation &op) {
    return isa<DataFlowOpInterface>(op) && op.hasAttr(kOnceAttrName);
  });
}

FailureOr<std::unique_ptr<MicroBatchStates>> MicroBatchChoice::run() {
  if (failed(checkGiven())) {
    return failure();
  }
  if (std::unique_ptr<MicroBatchStates> found = find()) {
    return found;
  }
  return why ? refuseMicroBatches(*why) : refuseSizes();
}

std::unique_ptr<MicroBatchStates>
MicroBatchChoice::findSecondPass(RefusedBatch batch) {
  return find() ? nullptr : getStates(second, batch);
}

std::unique_ptr<MicroBatchStates>
MicroBatchChoice::findRefused(RefusedBatch batch) {
  return find() ? nullptr : getStates(all, batch);
}

std::unique_ptr<MicroBatchStates>
MicroBatchChoice::getStates(const Refusals &refusals, RefusedBatch batch) {
  const std::optional<Refusal> &refusal = batch == RefusedBatch::kMostWork
                                              ? refusals.mostWork
                                              : refusals.mostArguments;
  if (!refusal) {
    return nullptr;
  }
  auto states = std::make_unique<MicroBatchStates>(
      function, options.numMicroBatches, refusal->split, refusal->cutsMade);
  bool isOther = refusal->hasState && hasUndividedBatch(*states);
  return isOther ? nullptr : std::move(states);
}

void MicroBatchChoice::Refusals::add(const Refusal &refusal) {
  auto keep = [&](std::optional<Refusal> &most, auto rank) {
    if (!most || rank(*most) < rank(refusal)) {
      most = refusal;
    }
  };
  keep(mostWork,
       [](const Refusal &one) { return std::tuple(!one.hasState, one.work); });
  keep(mostArguments, [](const Refusal &one) {
    size_t count = one.isOneSize ? one.split.size() : 0;
    return std::tuple(!one.hasState, std::get<0>(one.work), count, one.work);
  });
}

/// Where parts of the arguments do not do, what is made of the whole batch in
/// front of the model is cut instead: examples in another order, slices. Only
/// then what looks like state.
std::unique_ptr<MicroBatchStates> MicroBatchChoice::find() {
  bool areDivided = llvm::all_of(options.batch, [&](int64_t index) {
    return divides(function.getArgument(index));
  });
  if (!areDivided) {
    return nullptr;
  }
  std::unique_ptr<MicroBatchStates> found;
  for (auto [hasState, cuts] :
       {std::pair(false, false), {false, true}, {true, false}, {true, true}}) {
    if (hasState && !options.batch.empty()) {
      break;
    }
    cutsMade = cuts;
    best.reset();
    refused.reset();
    telling.reset();
    chosen.clear();
    std::unique_ptr<MicroBatchStates> reason;
    auto states =
        options.batch.empty() ? search(hasState, reason) : take(reason);
    if (states && hasState && hasUndividedBatch(*states)) {
      states.reset();
    }
    if (states && (!found || getWork(*found) < getWork(*states))) {
      found = std::move(states);
    }
    bool isDivided = found && found->getSplitFlops() > 0;
    bool isAll = isDivided && (cuts || found->getLateFlops() == 0);
    if (hasState ? isDivided : isAll && found->hasParts()) {
      break;
    }
    if (!cuts && !why && reason) {
      why = telling ? std::move(telling) : std::move(reason);
    }
  }
  return found;
}

std::unique_ptr<MicroBatchStates>
MicroBatchChoice::analyze(const Arguments &split) {
  auto states = std::make_unique<MicroBatchStates>(
      function, options.numMicroBatches, split, cutsMade);
  if (states->getRefused()) {
    bool hasState = llvm::any_of(split, [&](unsigned i) { return isState(i); });
    bool isOneSize = llvm::all_equal(llvm::map_range(split, [&](unsigned i) {
      return getFirstSize(function.getArgument(i));
    }));
    Refusal refusal = {split, cutsMade, hasState, isOneSize, getWork(*states)};
    all.add(refusal);
    if (needsSecondPass(*states)) {
      second.add(refusal);
    }
  }
  return states;
}

bool MicroBatchChoice::divides(BlockArgument argument) const {
  int64_t size = getFirstSize(argument);
  return size > 0 && size % options.numMicroBatches == 0;
}

LogicalResult MicroBatchChoice::checkGiven() {
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
MicroBatchChoice::take(std::unique_ptr<MicroBatchStates> &reason) {
  auto states = analyze(Arguments(options.batch.begin(), options.batch.end()));
  if (states->getRefused()) {
    reason = std::move(states);
    return nullptr;
  }
  return dividesWork(*states) ? std::move(states) : nullptr;
}

bool MicroBatchChoice::isState(unsigned index) {
  return function.getArgAttr(index, kAliasAttrName) != nullptr;
}

bool MicroBatchChoice::hasGradients() {
  Block &block = function.getBody().front();
  return llvm::any_of(block,
                      [](Operation &op) { return isGradientBarrier(&op); });
}

/// Arguments that can be cut, by their size along dimension 0.
MicroBatchChoice::Groups MicroBatchChoice::getGroups(bool hasState) {
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
MicroBatchChoice::search(bool allowsState,
                         std::unique_ptr<MicroBatchStates> &reason) {
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
  if (!best && !reason && goesThroughBatch(function)) {
    return analyze({});
  }
  if (best && dividesWork(*best) &&
      !((reason || cutsMade) && repeatsWork(*best))) {
    return std::move(best);
  }
  return nullptr;
}

/// Whether arguments of a size that does not divide are the batch: as many
/// micro-batches as they have rows would divide more than `states` does. What
/// looks like state is not cut in their place.
bool MicroBatchChoice::hasUndividedBatch(const MicroBatchStates &states) {
  llvm::MapVector<int64_t, Arguments> groups;
  for (BlockArgument argument : function.getArguments()) {
    int64_t size = getFirstSize(argument);
    if (size > 0 && !divides(argument) && !isState(argument.getArgNumber())) {
      groups[size].insert(argument.getArgNumber());
    }
  }
  return llvm::any_of(groups, [&](const auto &group) {
    MicroBatchStates others(function, group.first, group.second,
                            /*cutsMade=*/false);
    return isBatch(others) && getWork(states) < getWork(others);
  });
}

void MicroBatchChoice::chooseFirst(Groups &groups) {
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
bool MicroBatchChoice::consider(const Arguments &split, bool needsParts) {
  auto states = analyze(split);
  if (states->getRefused()) {
    if (!telling || getClarity(*telling) < getClarity(*states)) {
      telling = std::make_unique<MicroBatchStates>(*states);
    }
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
void MicroBatchChoice::considerEach(ArrayRef<unsigned> members) {
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

/// Whether products are made as a whole by every micro-batch, more than
/// parameters alone are expected to have (heuristic). Each turn of a loop is
/// counted once; those of what goes through the batch by itself are not.
bool MicroBatchChoice::repeatsWork(const MicroBatchStates &states) {
  double flops = 0;
  for (Operation &op : function.getBody().front()) {
    flops += op.hasAttr(kOnceAttrName) ? 0 : getProductFlops(&op);
  }
  double once =
      states.getSplitFlops() + states.getSummandFlops() + states.getLateFlops();
  return once < 0.9 * flops;
}

void MicroBatchChoice::addOthers(Groups &groups) {
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

LogicalResult MicroBatchChoice::refuseSizes() {
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
  if (shown == 0) {
    return error << " none: all arguments are state, or numbers; pass the "
                    "batch as an argument where the function makes it itself, "
                    "or use num_micro_batches=1";
  }
  if (!hasDivided) {
    return error << ": pass a number that divides the batch";
  }
  return error
         << ", but nothing is cut with those that divide, or less than is "
            "computed of parameters alone (a loop over examples takes all "
            "of them): use num_micro_batches=1, or "
            "micro_batches=\"independent\" to compute it per micro-batch";
}

} // namespace mlir::alpa
