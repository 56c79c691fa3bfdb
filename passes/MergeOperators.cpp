//===- MergeOperators.cpp - Light operators follow ------------------------===//

#include "cpp/transforms/OperatorMerging.h"

#include "cpp/analysis/Entry.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_MERGEOPERATORS
#include "passes/Passes.h.inc"

namespace {

struct MergeOperators : impl::MergeOperatorsBase<MergeOperators> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry) || failed(mergeOperators(*entry))) {
      signalPassFailure();
    }
  }
};

} // namespace
} // namespace mlir::alpa
