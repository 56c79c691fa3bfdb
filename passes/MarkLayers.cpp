//===- MarkLayers.cpp - Layers and phases of a train step -----------------===//

#include "cpp/analysis/Entry.h"
#include "cpp/analysis/LayerMarking.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_MARKLAYERS
#include "passes/Passes.h.inc"

namespace {

struct MarkLayers : impl::MarkLayersBase<MarkLayers> {
  using MarkLayersBase::MarkLayersBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry)) {
      return signalPassFailure();
    }
    if (microBatches < 1) {
      entry->emitOpError() << "micro-batches must be >= 1, got "
                           << microBatches;
      return signalPassFailure();
    }
    if (failed(verifyStages(*entry))) {
      return signalPassFailure();
    }
    SmallVector<int64_t> arguments(batch.begin(), batch.end());
    if (failed(markLayers(*entry, arguments, microBatches))) {
      signalPassFailure();
    }
  }

  /// What a stage cannot run: it does so once per micro-batch, on a mesh of its
  /// own, perhaps in another process.
  static LogicalResult verifyStages(func::FuncOp entry) {
    WalkResult result = entry.walk([](Operation *op) {
      if (auto callback = dyn_cast<CallbackOp>(op)) {
        callback.emitError()
            << "callback '" << callback.getName()
            << "' cannot run in a pipeline, where it would run once per "
               "micro-batch in the process of a stage; return its operands "
               "from the function and call it on them, or take ShardParallel";
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
