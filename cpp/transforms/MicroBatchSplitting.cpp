//===- MicroBatchSplitting.cpp - The step of one micro-batch --------------===//

#include "cpp/transforms/MicroBatchSplitting.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/StrategyGraph.h"
#include "cpp/transforms/MicroBatchRewriting.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/MapVector.h"
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

  FailureOr<std::unique_ptr<MicroBatchStates>> run() {
    return options.batch.empty() ? search() : takeGiven();
  }

private:
  std::unique_ptr<MicroBatchStates> analyze(const Arguments &split) {
    return std::make_unique<MicroBatchStates>(function, options.numMicroBatches,
                                              split);
  }

  bool divides(BlockArgument argument) const {
    int64_t size = getFirstSize(argument);
    return size > 0 && size % options.numMicroBatches == 0;
  }

  FailureOr<std::unique_ptr<MicroBatchStates>> takeGiven() {
    Arguments split;
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
      split.insert(index);
    }
    auto states = analyze(split);
    if (states->getRefused()) {
      return refuse(*states);
    }
    return states;
  }

  /// Arguments of one size along dimension 0 are cut together: first the size
  /// that divides the most work, then every other that lets more be cut.
  FailureOr<std::unique_ptr<MicroBatchStates>> search() {
    llvm::MapVector<int64_t, SmallVector<unsigned>> groups;
    for (BlockArgument argument : function.getArguments()) {
      bool isState =
          function.getArgAttr(argument.getArgNumber(), kAliasAttrName) !=
          nullptr;
      if (!isState && divides(argument)) {
        groups[getFirstSize(argument)].push_back(argument.getArgNumber());
      }
    }
    std::unique_ptr<MicroBatchStates> best, refused;
    Arguments chosen;
    for (auto &[size, members] : llvm::reverse(groups)) {
      Arguments split(members.begin(), members.end());
      auto states = analyze(split);
      if (states->getRefused()) {
        if (!refused || getWork(*refused) < getWork(*states)) {
          refused = std::move(states);
        }
      } else if (getWork(*states).second > 0 &&
                 (!best || getWork(*best) < getWork(*states))) {
        best = std::move(states);
        chosen = split;
      }
    }
    bool isWorse = best && refused && best->getSplitFlops() == 0 &&
                   refused->getSplitFlops() > 0;
    if (!best || isWorse) {
      if (refused) {
        return refuse(*refused);
      }
      return refuseSizes();
    }
    for (auto &[size, members] : groups) {
      Arguments split = chosen;
      split.insert(members.begin(), members.end());
      auto states = analyze(split);
      if (split.size() > chosen.size() && !states->getRefused() &&
          states->getSplitFlops() >= best->getSplitFlops() &&
          states->getWholeBytes() < best->getWholeBytes()) {
        best = std::move(states);
        chosen = split;
      }
    }
    return best;
  }

  static std::pair<double, double> getWork(const MicroBatchStates &states) {
    return {states.getSplitFlops(), states.getSplitBytes()};
  }

  LogicalResult refuse(const MicroBatchStates &states) {
    Operation *op = states.getRefused();
    Operation *cause = states.getCause(op);
    InFlightDiagnostic error =
        op->emitOpError()
        << "'" << getReadableName(op) << "' cannot run once per micro-batch: ";
    if (cause != op) {
      error << "what it uses comes from '" << getReadableName(cause) << "', ";
      op = cause;
    }
    error << "which needs the whole batch, not one of "
          << options.numMicroBatches
          << " parts (a sum over the batch that is not simply added up, such "
             "as batch statistics, or rows that meet each other)";
    return error << ": use num_micro_batches=1, or micro_batches=\"independent\""
                    " to compute it per micro-batch";
  }

  LogicalResult refuseSizes() {
    InFlightDiagnostic error =
        function.emitOpError()
        << "has no argument that can be cut into " << options.numMicroBatches
        << " micro-batches; sizes along dimension 0 are";
    unsigned shown = 0;
    for (BlockArgument argument : function.getArguments()) {
      bool isState =
          function.getArgAttr(argument.getArgNumber(), kAliasAttrName) !=
          nullptr;
      if (!isState && getFirstSize(argument) > 0 && shown++ < 8) {
        error << (shown == 1 ? " " : ", ") << getReadableName(argument) << " "
              << getFirstSize(argument);
      }
    }
    return error << (shown == 0 ? " none" : "")
                 << ": pass a number that divides the batch";
  }

  func::FuncOp function;
  const MicroBatchOptions &options;
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
  llvm::DenseSet<Value> ofBatch = getDependents(function, /*hasState=*/false);
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

} // namespace

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
    return success();
  }
  auto states = Choosing(function, options).run();
  if (failed(states)) {
    return failure();
  }
  MicroBatchRewriting(function, **states).run();
  MLIRContext *context = function.getContext();
  function->getParentOp()->setAttr(
      kMeshAttrName, MeshAttr::get(context, {StringAttr::get(context, "time")},
                                   {options.numMicroBatches}));
  return success();
}

} // namespace mlir::alpa
