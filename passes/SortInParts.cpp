//===- SortInParts.cpp - Rows that are sorted in parts --------------------===//

#include "cpp/transforms/SortedParts.h"

#include "cpp/analysis/Entry.h"
#include "passes/Passes.h"
#include "stablehlo/dialect/ChloOps.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_SORTINPARTS
#include "passes/Passes.h.inc"

namespace {

struct SortInParts : impl::SortInPartsBase<SortInParts> {
  using SortInPartsBase::SortInPartsBase;

  void runOnOperation() override {
    if (parts < 1) {
      emitError(getOperation().getLoc())
          << "alpa-sort-in-parts: parts must be >= 1, got " << parts.getValue();
      return signalPassFailure();
    }
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry)) {
      return signalPassFailure();
    }
    if (parts > 1 && hasSortedRows(*entry, parts)) {
      sortInParts(*entry, parts);
      emitRemark(entry->getLoc())
          << "rows that are sorted for products in groups are sorted in "
          << parts.getValue() << " parts, each with groups of its own";
    }
  }
};

} // namespace
} // namespace mlir::alpa
