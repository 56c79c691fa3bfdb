//===- SplitMicroBatches.cpp - Puts a step on the axis of time ------------===//

#include "cpp/analysis/Entry.h"
#include "cpp/transforms/MicroBatchSplitting.h"
#include "dialects/alpa/Alpa.h"
#include "mlir/Pass/PassManager.h"
#include "passes/Passes.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_SPLITMICROBATCHES
#include "passes/Passes.h.inc"

namespace {

struct SplitMicroBatches : impl::SplitMicroBatchesBase<SplitMicroBatches> {
  using SplitMicroBatchesBase::SplitMicroBatchesBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry)) {
      return signalPassFailure();
    }
    if (microBatches < 1) {
      entry->emitOpError() << "micro-batches must be >= 1, got "
                           << microBatches.getValue();
      return signalPassFailure();
    }
    if (failed(verifyStages(*entry))) {
      return signalPassFailure();
    }
    MicroBatchOptions options;
    options.numMicroBatches = microBatches;
    options.isOnePass = onePass;
    options.batch.assign(batch.begin(), batch.end());
    if (failed(setReduction(*entry, options)) ||
        failed(splitMicroBatches(*entry, options, [&] { return loop(); }))) {
      signalPassFailure();
    }
  }

  LogicalResult loop() {
    LoopSecondPassOptions options;
    options.batch.assign(batch.begin(), batch.end());
    options.microBatches = microBatches;
    OpPassManager manager(ModuleOp::getOperationName());
    manager.addPass(createLoopSecondPass(options));
    return runPipeline(manager, getOperation());
  }

  LogicalResult setReduction(func::FuncOp entry, MicroBatchOptions &options) {
    options.isIndependent = !independent.empty();
    if (independent.empty() || independent == "mean") {
      return success();
    }
    if (independent == "sum") {
      options.reduction = Reduction::kSum;
      return success();
    }
    options.reduction = Reduction::kWeighted;
    if (StringRef(independent).getAsInteger(10, options.weight)) {
      return entry.emitOpError()
             << "independent must be mean, sum or the number of a result, got "
             << independent;
    }
    if (options.weight < 0 || options.weight >= entry.getNumResults()) {
      return entry.emitOpError()
             << "has " << entry.getNumResults()
             << " results, the weight of a micro-batch is none of them: "
             << options.weight;
    }
    return success();
  }

  /// What a stage cannot run: it does so once per micro-batch, on a mesh of its
  /// own, perhaps in another process.
  static LogicalResult verifyStages(func::FuncOp entry) {
    WalkResult result = entry.walk([](Operation *op) {
      if (auto callback = dyn_cast<CallbackOp>(op)) {
        callback.emitError()
            << "callback '" << callback.getName()
            << "' cannot run in a pipeline or between micro-batches, where it "
               "would run once per micro-batch in the process of a stage; "
               "call it outside of the gradients, without results, or return "
               "its operands from the function and call it on them, or take "
               "ShardParallel without micro-batches; checks of equinox are "
               "left out with EQX_ON_ERROR=nan in the environment";
        return WalkResult::interrupt();
      }
      if (isa<ManualOp>(op)) {
        op->emitError() << "a shard_map cannot run in a pipeline, whose stages "
                           "have meshes of their own; take ManualSharding";
        return WalkResult::interrupt();
      }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }
};

} // namespace
} // namespace mlir::alpa
