//===- InlineCalls.cpp - Bodies of called functions -----------------------===//

#include "cpp/transforms/Inlining.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_INLINECALLS
#include "passes/Passes.h.inc"

namespace {

struct InlineCalls : impl::InlineCallsBase<InlineCalls> {
  void runOnOperation() override {
    if (failed(inlineCalls(getOperation()))) {
      signalPassFailure();
    }
  }
};

} // namespace
} // namespace mlir::alpa
