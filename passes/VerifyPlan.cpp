//===- VerifyPlan.cpp - Proves that a plan follows from itself ------------===//

#include "cpp/analysis/Entry.h"
#include "cpp/analysis/PlanVerification.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_VERIFYPLAN
#include "passes/Passes.h.inc"

namespace {

struct VerifyPlan : impl::VerifyPlanBase<VerifyPlan> {
  using VerifyPlanBase::VerifyPlanBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry)) {
      return signalPassFailure();
    }
    FailureOr<MeshAttr> mesh = getPlannedMesh(getOperation());
    if (failed(mesh) ||
        failed(verifyPlan(*entry, *mesh, {resharded, microBatches}))) {
      return signalPassFailure();
    }
    markAllAnalysesPreserved();
  }
};

} // namespace
} // namespace mlir::alpa
