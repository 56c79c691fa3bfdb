//===- InlineCalls.cpp - Bodies of called functions -----------------------===//

#include "cpp/transforms/Inlining.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_INLINECALLS
#include "passes/Passes.h.inc"

namespace {

struct InlineCalls : impl::InlineCallsBase<InlineCalls> {
  using InlineCallsBase::InlineCallsBase;

  void runOnOperation() override {
    FailureOr<int64_t> numVisits = inlineCalls(getOperation());
    if (failed(numVisits)) {
      signalPassFailure();
      return;
    }
    if (report) {
      getOperation().emitRemark()
          << "inlining read, moved or copied " << *numVisits << " operators";
    }
  }
};

} // namespace
} // namespace mlir::alpa
