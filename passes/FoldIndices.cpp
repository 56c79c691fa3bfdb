//===- FoldIndices.cpp - What ranges of indices tell ----------------------===//

#include "cpp/analysis/IntegerRange.h"
#include "cpp/transforms/SortedIndices.h"
#include "dialects/alpa/Alpa.h"
#include "passes/Passes.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_FOLDINDICES
#include "passes/Passes.h.inc"

namespace {

using stablehlo::GatherOp;
using stablehlo::ScatterOp;
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

bool writesUpdates(ScatterOp op) {
  Block &body = op.getUpdateComputation().front();
  return op.getInputs().size() == 1 &&
         body.getTerminator()->getOperand(0) == body.getArgument(1);
}

/// The one dimension that the indices of a scatter are of, where it writes all
/// of the others; none if there is none.
std::optional<int64_t> getIndexedDim(ScatterOp op) {
  auto dims = op.getScatterDimensionNumbers();
  bool isOne =
      dims.getInputBatchingDims().empty() &&
      dims.getScatterDimsToOperandDims().size() == 1 &&
      dims.getInsertedWindowDims() == dims.getScatterDimsToOperandDims();
  return isOne ? std::optional(dims.getInsertedWindowDims()[0]) : std::nullopt;
}

/// What is read where it was written, each element in a place of its own: the
/// updates. Null for anything else.
Value getWritten(GatherOp op) {
  auto scatter = op.getOperand().getDefiningOp<ScatterOp>();
  if (!scatter || !writesUpdates(scatter) ||
      scatter.getScatterIndices() != op.getStartIndices() ||
      scatter.getUpdates()[0].getType() != op.getType()) {
    return {};
  }
  auto written = scatter.getScatterDimensionNumbers();
  auto read = op.getDimensionNumbers();
  std::optional<int64_t> dim = getIndexedDim(scatter);
  bool isSame =
      dim && read.getOperandBatchingDims().empty() &&
      read.getStartIndexMap() == written.getScatterDimsToOperandDims() &&
      read.getCollapsedSliceDims() == written.getInsertedWindowDims() &&
      read.getOffsetDims() == written.getUpdateWindowDims() &&
      read.getIndexVectorDim() == written.getIndexVectorDim();
  auto into = cast<RankedTensorType>(op.getOperand().getType());
  return isSame && areDistinct(op.getStartIndices(), into.getDimSize(*dim))
             ? scatter.getUpdates()[0]
             : Value();
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
        same = getWritten(gather);
      }
      if (same && same.getType() == op->getResult(0).getType() &&
          !op->hasAttr(kRuleAttrName)) {
        op->getResult(0).replaceAllUsesWith(same);
        replaced.push_back(op);
      }
    });
    eraseWithOperands(replaced);
  }

  /// Erases operators that nothing uses any longer, and what was made for them
  /// alone.
  static void eraseWithOperands(ArrayRef<Operation *> operators) {
    llvm::SetVector<Operation *> worklist(llvm::from_range, operators);
    while (!worklist.empty()) {
      Operation *op = worklist.pop_back_val();
      if (!isOpTriviallyDead(op)) {
        continue;
      }
      for (Value operand : op->getOperands()) {
        if (Operation *made = operand.getDefiningOp()) {
          worklist.insert(made);
        }
      }
      op->walk([&](Operation *inner) { worklist.remove(inner); });
      op->erase();
    }
  }
};

} // namespace
} // namespace mlir::alpa
