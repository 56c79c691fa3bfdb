//===- WriteReceivedResults.cpp - Results that other devices send ---------===//

#include "passes/Passes.h"

#include "cpp/analysis/Tiles.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_WRITERECEIVEDRESULTS
#include "passes/Passes.h.inc"

namespace {

/// True for what devices send each other as it is, perhaps in another shape.
bool isReceived(Value value) {
  Operation *op = value.getDefiningOp();
  while (isa_and_nonnull<stablehlo::ReshapeOp, stablehlo::TransposeOp>(op)) {
    op = op->getOperand(0).getDefiningOp();
  }
  return isa_and_nonnull<stablehlo::AllGatherOp, stablehlo::AllToAllOp,
                         stablehlo::CollectivePermuteOp>(op);
}

/// True for blocks that are no tiles where the result has them: they are
/// gathered along an outermost dimension and copied to where they belong.
bool isCopiedFromBlocks(Value value) {
  auto gather = value.getDefiningOp<stablehlo::AllGatherOp>();
  if (!gather) {
    return false;
  }
  unsigned number = cast<OpResult>(value).getResultNumber();
  auto block = cast<RankedTensorType>(gather.getOperands()[number].getType());
  auto dim = static_cast<int64_t>(gather.getAllGatherDim());
  return !isMadeOfTiles(cast<RankedTensorType>(value.getType()), dim,
                        block.getDimSize(dim));
}

/// The type of a tensor of real numbers that have a format; null for others.
FloatType getFormat(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  auto number =
      tensor ? dyn_cast<FloatType>(tensor.getElementType()) : FloatType();
  // Narrower ones have no infinities, or none of the usual ones.
  return number && number.getWidth() >= 16 ? number : FloatType();
}

struct WriteReceivedResults
    : impl::WriteReceivedResultsBase<WriteReceivedResults> {
  void runOnOperation() override {
    getOperation().walk([](func::ReturnOp returned) {
      for (OpOperand &operand : returned->getOpOperands()) {
        FloatType number = getFormat(operand.get());
        if (!number || !isReceived(operand.get()) ||
            isCopiedFromBlocks(operand.get())) {
          continue;
        }
        // Of the mantissa one bit is not stored.
        unsigned mantissa = number.getFPMantissaWidth() - 1;
        unsigned exponent = number.getWidth() - mantissa - 1;
        OpBuilder builder(returned);
        operand.set(stablehlo::ReducePrecisionOp::create(
            builder, operand.get().getLoc(), operand.get(), exponent,
            mantissa));
      }
    });
  }
};

} // namespace
} // namespace mlir::alpa
