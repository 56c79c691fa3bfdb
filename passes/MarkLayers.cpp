//===- MarkLayers.cpp - Layers and phases of a train step -----------------===//

#include "cpp/analysis/Entry.h"
#include "cpp/transforms/LayerMarking.h"
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
                           << microBatches.getValue();
      return signalPassFailure();
    }
    if (failed(markLayers(*entry, microBatches))) {
      signalPassFailure();
    }
  }
};

} // namespace
} // namespace mlir::alpa
