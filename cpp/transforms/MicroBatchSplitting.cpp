//===- MicroBatchSplitting.cpp - The step of one micro-batch --------------===//

#include "cpp/transforms/MicroBatchSplitting.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/StrategyGraph.h"
#include "cpp/transforms/Erasure.h"
#include "cpp/transforms/IndependentMicroBatches.h"
#include "cpp/transforms/JoinedRows.h"
#include "cpp/transforms/MicroBatchChoice.h"
#include "cpp/transforms/MicroBatchRewriting.h"
#include "cpp/transforms/SortedParts.h"
#include "mlir/IR/OwningOpRef.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::alpa {

namespace {

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
void joinOne(func::FuncOp function, bool isOnePass) {
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
  // Gradients at what others have made are behind these, and run once.
  llvm::SmallDenseSet<Operation *> later;
  for (Operation *barrier : barriers) {
    if (!isOnePass && llvm::any_of(barrier->getOperands(), [&](Value value) {
          return behind.contains(value);
        })) {
      later.insert(barrier);
    }
  }
  for (Operation *barrier : barriers) {
    builder.setInsertionPoint(barrier);
    for (auto [operand, result] :
         llvm::zip(barrier->getOperands(), barrier->getResults())) {
      bool isJoined = !result.use_empty() && !later.contains(barrier);
      result.replaceAllUsesWith(isJoined ? join(operand) : operand);
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
  llvm::SmallDenseSet<Attribute> inParts;
  for (BlockArgument argument : function.getArguments()) {
    unsigned index = argument.getArgNumber();
    if (Attribute number = function.getArgAttr(index, kBatchAttrName)) {
      cut.push_back(getReadableName(argument));
      inParts.insert(number);
    } else if (!inParts.contains(function.getArgAttr(index, kInputAttrName)) &&
               !function.getArgAttr(index, kAliasAttrName) &&
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

/// How a step is cut, with what goes through the batch once more made a loop if
/// it has to be; null if it cannot be.
static FailureOr<std::unique_ptr<MicroBatchStates>>
findStates(func::FuncOp function, const MicroBatchOptions &options,
           function_ref<LogicalResult()> goOverAgain) {
  std::unique_ptr<MicroBatchStates> states =
      MicroBatchChoice(function, options).find();
  if (states || options.isOnePass) {
    return states;
  }
  if (failed(goOverAgain())) {
    return failure();
  }
  return MicroBatchChoice(function, options).find();
}

/// That of a step in another form; null, and nothing has changed, if it cannot
/// be cut so.
static FailureOr<std::unique_ptr<MicroBatchStates>>
findInForm(func::FuncOp function, const MicroBatchOptions &options,
           function_ref<void(func::FuncOp, int64_t)> write,
           function_ref<LogicalResult()> goOverAgain) {
  OwningOpRef<func::FuncOp> before = function.clone();
  write(function, options.numMicroBatches);
  auto states = findStates(function, options, goOverAgain);
  if (succeeded(states) && !*states) {
    function.getBody().takeBody(before->getBody());
    function->setAttrs(before.get()->getAttrDictionary());
  }
  return states;
}

/// That of a step in which rows are sorted, and batches joined, within their
/// micro-batch; null, and nothing has changed, if there are none, or it cannot
/// be cut so.
static FailureOr<std::unique_ptr<MicroBatchStates>>
findInParts(func::FuncOp function, const MicroBatchOptions &options,
            function_ref<LogicalResult()> goOverAgain) {
  FailureOr<std::unique_ptr<MicroBatchStates>> states =
      std::unique_ptr<MicroBatchStates>();
  if (hasSortedRows(function, options.numMicroBatches)) {
    states = findInForm(function, options, sortInParts, goOverAgain);
  }
  if (succeeded(states) && !*states &&
      hasJoinedRows(function, options.numMicroBatches)) {
    states = findInForm(function, options, joinInParts, goOverAgain);
  }
  return states;
}

LogicalResult splitMicroBatches(func::FuncOp function,
                                const MicroBatchOptions &options,
                                function_ref<LogicalResult()> goOverAgain) {
  for (int64_t index : options.batch) {
    if (index < 0 || index >= function.getNumArguments()) {
      return function.emitOpError()
             << "batch argument " << index << " is none of the "
             << function.getNumArguments();
    }
  }
  if (options.numMicroBatches == 1) {
    joinOne(function, options.isOnePass || options.isIndependent);
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
  auto found = findInParts(function, options, goOverAgain);
  if (succeeded(found) && !*found) {
    found = findStates(function, options, goOverAgain);
  }
  if (succeeded(found) && !*found) {
    // Says why.
    found = MicroBatchChoice(function, options).run();
  }
  if (failed(found)) {
    return failure();
  }
  std::unique_ptr<MicroBatchStates> states = std::move(*found);
  states->deferSummands();
  MicroBatchRewriting(function, *states).run();
  remarkOn(function, options.numMicroBatches,
           states->getSplitFlops() > 0 || goesThroughBatch(function));
  MLIRContext *context = function.getContext();
  function->getParentOp()->setAttr(
      kMeshAttrName, MeshAttr::get(context, {StringAttr::get(context, "time")},
                                   {options.numMicroBatches}));
  return success();
}

} // namespace mlir::alpa
