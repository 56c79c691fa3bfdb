//===- HintTripCounts.cpp - Loops of an unknown number of turns -----------===//

#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/DataFlow.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_HINTTRIPCOUNTS
#include "passes/Passes.h.inc"

namespace {

struct HintTripCounts : impl::HintTripCountsBase<HintTripCounts> {
  using HintTripCountsBase::HintTripCountsBase;

  void runOnOperation() override {
    if (count < 1) {
      getOperation()->emitError()
          << "a loop runs at least once, 'count' is " << count.getValue();
      signalPassFailure();
      return;
    }
    auto hint = IntegerAttr::get(IntegerType::get(&getContext(), 64), count);
    getOperation()->walk([&](DataFlowOpInterface op) {
      if (!op.getRegionRuns() && !op->hasAttr(kTripCountAttrName)) {
        op->setAttr(kTripCountAttrName, hint);
      }
    });
  }
};

} // namespace
} // namespace mlir::alpa
