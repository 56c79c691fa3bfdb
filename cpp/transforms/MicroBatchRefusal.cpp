//===- MicroBatchRefusal.cpp - Why a step has no micro-batches ------------===//

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/StrategyGraph.h"
#include "cpp/transforms/MicroBatchStates.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::alpa {

static bool makesNumber(Operation *op) {
  return llvm::all_of(op->getResultTypes(), [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getRank() == 0;
  });
}

/// The optimiser of one part of the model has run, and gradients of another
/// follow: that takes a second way through the batch.
static LogicalResult refuseSecondPass(Operation *op, Operation *cause) {
  return op->emitOpError()
         << "'" << getReadableName(op)
         << "' cannot run once per micro-batch: it uses '"
         << getReadableName(cause)
         << "', which is made of gradients of the whole batch, and the "
            "micro-batches of a step are gone through once: take all "
            "gradients of the step at the parameters that it is given, or "
            "those that need what others have updated in a step of their "
            "own, parallelised by itself, or take a schedule with a flush";
}

/// Where what an operator uses is some of the examples that micro-batches
/// have parts of: `model(x)[0]`, `model(x)[:4]`. Null if nowhere.
static Operation *findTaken(const MicroBatchStates &states, Operation *op) {
  llvm::SetVector<Operation *> work;
  work.insert(op);
  for (size_t next = 0; next < work.size(); ++next) {
    Operation *now = work[next];
    if (isa<stablehlo::SliceOp, stablehlo::DynamicSliceOp>(now)) {
      TimeEntry dim = states.getState(now->getOperand(0));
      auto getSize = [&](Value value) {
        return cast<RankedTensorType>(value.getType()).getDimSize(dim);
      };
      if (dim >= 0 &&
          getSize(now->getResult(0)) < getSize(now->getOperand(0))) {
        return now;
      }
    }
    forEachUsedValue(now, [&](Value value) {
      TimeEntry state = states.getState(value);
      Operation *maker = value.getDefiningOp();
      if (maker && (state == kPartial || state == kAfter)) {
        work.insert(maker);
      }
    });
  }
  return nullptr;
}

static LogicalResult refuseTaken(const MicroBatchStates &states, Operation *op,
                                 Operation *taken) {
  return op->emitOpError()
         << "'" << getReadableName(op)
         << "' cannot run once per micro-batch: what it uses comes from '"
         << getReadableName(taken)
         << "', which takes some examples of a value of which each of "
         << states.getNumMicroBatches()
         << " micro-batches has a part: take these examples of the batch "
            "before the model sees them, model(x[:k]) for model(x)[:k], as "
            "many as the number of micro-batches divides, or use "
            "num_micro_batches=1";
}

LogicalResult refuseMicroBatches(const MicroBatchStates &states) {
  Operation *op = states.getRefused();
  Operation *cause = states.getCause(op);
  if (needsSecondPass(states)) {
    return refuseSecondPass(op, cause);
  }
  if (Operation *taken = findTaken(states, op)) {
    return refuseTaken(states, op, taken);
  }
  InFlightDiagnostic error = op->emitOpError()
                             << "'" << getReadableName(op)
                             << "' cannot run once per micro-batch: ";
  if (cause == op) {
    error << "it ";
  } else {
    error << "what it uses comes from '" << getReadableName(cause)
          << "', which ";
  }
  error << "needs the whole batch, not one of " << states.getNumMicroBatches()
        << " parts along dimension 0 (a sum over the batch that is not simply "
           "added up, such as batch statistics, or rows that meet each "
           "other; examples along another dimension have to be passed along "
           "the first and swapped inside of the function)";
  error << ": use num_micro_batches=1, or micro_batches=\"independent\""
           " to compute it per micro-batch";
  if (takesGradients(cause)) {
    error << "; a loop that takes gradients is gone through by micro-batches "
             "if it is a scan or a fori_loop over parts of the batch that "
             "adds them up, or stacks them, and does nothing else with them";
  } else if (isa<stablehlo::WhileOp>(op)) {
    error << "; a loop over chunks of examples is divided among the "
             "micro-batches if it scans over them (xs=x.reshape(turns, ...), "
             "or lax.map), in a multiple of "
          << states.getNumMicroBatches() << " turns";
  } else if (isa<stablehlo::ReduceWindowOp>(cause) ||
             isa<stablehlo::ReduceWindowOp>(op)) {
    error << "; a running total, such as the positions of tokens in the "
             "capacity of an expert, can be one for each group of examples: "
             "reshape the batch to groups, and jax.vmap over these";
  } else if (!makesNumber(cause)) {
    error << "; what no gradient is taken through, as advantages that are "
             "normalised over the batch, can be computed by a function of "
             "its own and passed with the batch";
  } else {
    error << "; where it makes the loss of a sum (a root, a logarithm), take "
             "gradients of the sum, and multiply them by its derivative "
             "afterwards";
  }
  return error;
}

} // namespace mlir::alpa
