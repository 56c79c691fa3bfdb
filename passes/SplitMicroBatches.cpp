//===- SplitMicroBatches.cpp - Puts a step on the axis of time ------------===//

#include "cpp/analysis/Entry.h"
#include "cpp/transforms/MicroBatchSplitting.h"
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
    MicroBatchOptions options;
    options.numMicroBatches = microBatches;
    options.batch.assign(batch.begin(), batch.end());
    if (!independent.empty() && independent != "mean" && independent != "sum") {
      entry->emitOpError() << "independent must be mean or sum, got "
                           << independent;
      return signalPassFailure();
    }
    options.isIndependent = !independent.empty();
    options.isMean = independent != "sum";
    if (failed(splitMicroBatches(*entry, options))) {
      signalPassFailure();
    }
  }
};

} // namespace
} // namespace mlir::alpa
