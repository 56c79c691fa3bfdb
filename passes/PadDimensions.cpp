//===- PadDimensions.cpp - Sizes that the devices do not divide -----------===//

#include "cpp/transforms/DimensionPadding.h"

#include "cpp/analysis/Entry.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_PADDIMENSIONS
#include "passes/Passes.h.inc"

namespace {

struct PadDimensions : impl::PadDimensionsBase<PadDimensions> {
  using PadDimensionsBase::PadDimensionsBase;

  void runOnOperation() override {
    if (multiple < 1) {
      emitError(getOperation().getLoc())
          << "alpa-pad-dimensions: multiple must be >= 1, got "
          << multiple.getValue();
      return signalPassFailure();
    }
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry)) {
      return signalPassFailure();
    }
    padDimensions(*entry, {multiple, mostAdded});
  }
};

} // namespace
} // namespace mlir::alpa
