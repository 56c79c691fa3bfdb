//===- FoldIndices.cpp - What ranges of indices tell ----------------------===//

#include "cpp/analysis/IntegerRange.h"
#include "cpp/transforms/Erasure.h"
#include "cpp/transforms/ReadPlaces.h"
#include "dialects/alpa/Alpa.h"
#include "passes/Passes.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_FOLDINDICES
#include "passes/Passes.h.inc"

namespace {

using stablehlo::GatherOp;
using stablehlo::SelectOp;

/// What a selection takes whatever the arguments are; null if it depends on
/// them.
Value getTaken(SelectOp op, IntegerRanges &ranges) {
  if (op.getOnTrue() == op.getOnFalse()) {
    return op.getOnTrue();
  }
  std::optional<IntegerRange> range = ranges.get(op.getPred());
  if (!range || range->least != range->most) {
    return {};
  }
  return range->least ? op.getOnTrue() : op.getOnFalse();
}

struct FoldIndices : impl::FoldIndicesBase<FoldIndices> {
  void runOnOperation() override {
    IntegerRanges ranges;
    SmallVector<Operation *> replaced;
    // Operands come first.
    getOperation()->walk<WalkOrder::PreOrder>([&](Operation *op) {
      Value same;
      if (auto select = dyn_cast<SelectOp>(op)) {
        same = getTaken(select, ranges);
      } else if (auto gather = dyn_cast<GatherOp>(op)) {
        same = getReread(gather);
      }
      if (same && same.getType() == op->getResult(0).getType() &&
          !op->hasAttr(kRuleAttrName)) {
        op->getResult(0).replaceAllUsesWith(same);
        replaced.push_back(op);
      }
    });
    eraseUnused(replaced);
  }
};

} // namespace
} // namespace mlir::alpa
