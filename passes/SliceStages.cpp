//===- SliceStages.cpp - Cuts a train step into stages --------------------===//

#include "cpp/analysis/Entry.h"
#include "cpp/transforms/ReferencedFunctions.h"
#include "cpp/transforms/StageSlicing.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_SLICESTAGES
#include "passes/Passes.h.inc"

namespace {

struct SliceStages : impl::SliceStagesBase<SliceStages> {
  using SliceStagesBase::SliceStagesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> entry = getEntryFunction(module);
    if (failed(entry) || failed(verifyStages())) {
      return signalPassFailure();
    }
    SmallVector<int64_t> stageOfLayer(stages.begin(), stages.end());
    StageSlicing slicing(*entry, stageOfLayer, lastMakesFree);
    if (failed(slicing.run())) {
      return signalPassFailure();
    }
    OpBuilder builder(module.getBody(), module.getBody()->end());
    for (int64_t stage = 0; stage < slicing.getNumStages(); ++stage) {
      auto nested = ModuleOp::create(builder, module.getLoc(),
                                     "stage_" + std::to_string(stage));
      OpBuilder inside(nested.getBodyRegion());
      slicing.slice(inside, stage, "main");
      copyReferencedFunctions(module, nested);
    }
    entry->erase();
  }

  LogicalResult verifyStages() {
    int64_t next = 0;
    for (int64_t stage : stages) {
      if (stage != next && (next == 0 || stage != next - 1)) {
        return getOperation().emitError()
               << "stages ascend from 0 by 0 or 1 from layer to layer, found "
               << stage << " where " << next << " is the next";
      }
      next = stage + 1;
    }
    return success();
  }
};

} // namespace
} // namespace mlir::alpa
