//===- SplitPhases.cpp - Cuts a planned stage into its programs -----------===//

#include "cpp/analysis/Entry.h"
#include "cpp/analysis/PlanVerification.h"
#include "cpp/transforms/PhaseSplitting.h"
#include "dialects/alpa/Alpa.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_SPLITPHASES
#include "passes/Passes.h.inc"

namespace {

struct SplitPhases : impl::SplitPhasesBase<SplitPhases> {
  using SplitPhasesBase::SplitPhasesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> entry = getEntryFunction(module);
    if (failed(entry)) {
      return signalPassFailure();
    }
    FailureOr<MeshAttr> mesh = getPlannedMesh(module);
    if (failed(mesh) || failed(verifyPlan(*entry, *mesh))) {
      return signalPassFailure();
    }
    splitPhases(module, *entry, splitBackward);
    entry->erase();
    module->removeAttr(kMeshAttrName);
  }
};

} // namespace
} // namespace mlir::alpa
