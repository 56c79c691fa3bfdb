//===- CheckRegions.cpp - Unknown operators with regions ------------------===//

#include "cpp/analysis/Guards.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_CHECKREGIONS
#include "passes/Passes.h.inc"

namespace {

struct CheckRegions : impl::CheckRegionsBase<CheckRegions> {
  void runOnOperation() override {
    if (refuseUnknownRegions(getOperation()).failed()) {
      signalPassFailure();
    }
  }
};

} // namespace
} // namespace mlir::alpa
