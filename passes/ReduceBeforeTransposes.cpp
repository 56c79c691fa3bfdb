//===- ReduceBeforeTransposes.cpp - Sums of what is not yet transposed ----===//

#include "passes/Passes.h"

#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_REDUCEBEFORETRANSPOSES
#include "passes/Passes.h.inc"

namespace {

/// The transposition of which a collective alone reads the result; null if
/// there is none.
stablehlo::TransposeOp getTransposed(Operation *collective) {
  if (collective->getNumOperands() != 1) {
    return {};
  }
  Value operand = collective->getOperand(0);
  auto transpose = operand.getDefiningOp<stablehlo::TransposeOp>();
  return transpose && operand.hasOneUse() &&
                 transpose.getType().hasStaticShape()
             ? transpose
             : stablehlo::TransposeOp();
}

/// Has a collective take what a transposition takes, and transposes what it
/// makes.
void moveBefore(Operation *collective, stablehlo::TransposeOp transpose) {
  ArrayRef<int64_t> permutation = transpose.getPermutation();
  Value made = collective->getResult(0);
  auto type = cast<RankedTensorType>(made.getType());
  SmallVector<int64_t> sizes(type.getRank());
  for (auto [to, from] : llvm::enumerate(permutation)) {
    sizes[from] = type.getDimSize(to);
  }
  OpBuilder builder(collective->getContext());
  builder.setInsertionPointAfter(collective);
  auto moved = stablehlo::TransposeOp::create(builder, transpose.getLoc(), type,
                                              made, permutation);
  made.replaceAllUsesExcept(moved, moved);
  made.setType(type.clone(sizes));
  collective->setOperand(0, transpose.getOperand());
  transpose.erase();
}

struct ReduceBeforeTransposes
    : impl::ReduceBeforeTransposesBase<ReduceBeforeTransposes> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (!isa<stablehlo::AllReduceOp, stablehlo::ReduceScatterOp>(op)) {
        return;
      }
      stablehlo::TransposeOp transpose = getTransposed(op);
      if (!transpose) {
        return;
      }
      if (auto scatter = dyn_cast<stablehlo::ReduceScatterOp>(op)) {
        scatter.setScatterDimension(
            transpose.getPermutation()[scatter.getScatterDimension()]);
      }
      moveBefore(op, transpose);
    });
  }
};

} // namespace
} // namespace mlir::alpa
