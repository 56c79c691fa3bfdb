//===- OutlineAttention.cpp - Attention as one operator -------------------===//

#include "cpp/transforms/AttentionOutlining.h"

#include "cpp/analysis/Entry.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_OUTLINEATTENTION
#include "passes/Passes.h.inc"

namespace {

struct OutlineAttention : impl::OutlineAttentionBase<OutlineAttention> {
  using OutlineAttentionBase::OutlineAttentionBase;

  void runOnOperation() override {
    if (fewestKeys < 1 || blockBytes < 1) {
      emitError(getOperation().getLoc())
          << "alpa-outline-attention: keys and block-bytes must be >= 1, got "
          << fewestKeys.getValue() << " and " << blockBytes.getValue();
      return signalPassFailure();
    }
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry)) {
      return signalPassFailure();
    }
    outlineAttention(*entry, {fewestKeys, blockBytes});
  }
};

} // namespace
} // namespace mlir::alpa
