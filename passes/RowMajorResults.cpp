//===- RowMajorResults.cpp - Results that XLA for CPU writes row-major ----===//

#include "passes/Passes.h"

#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_ROWMAJORRESULTS
#include "passes/Passes.h.inc"

namespace {

/// Whether XLA for CPU calls a library that writes rows, whatever layout the
/// result was given.
static bool isWrittenInRows(Operation *op) {
  if (isa<stablehlo::FftOp>(op)) {
    return true;
  }
  auto convolution = dyn_cast<stablehlo::ConvolutionOp>(op);
  return convolution &&
         convolution.getLhs().getType().getElementType().isSignlessInteger(8) &&
         convolution.getType().getElementType().isSignlessInteger(32);
}

/// Hands a result on by way of one dimension, of which there is one layout.
static void flatten(Value result, RankedTensorType type) {
  OpBuilder builder(result.getContext());
  builder.setInsertionPointAfterValue(result);
  Location loc = result.getLoc();
  auto flat = stablehlo::ReshapeOp::create(
      builder, loc, type.clone({type.getNumElements()}), result);
  auto fence = stablehlo::OptimizationBarrierOp::create(
      builder, loc, flat->getResultTypes(), flat->getResults());
  auto shaped =
      stablehlo::ReshapeOp::create(builder, loc, type, fence->getResult(0));
  result.replaceAllUsesExcept(shaped, flat);
}

struct RowMajorResults : impl::RowMajorResultsBase<RowMajorResults> {
  void runOnOperation() override {
    getOperation().walk([](Operation *op) {
      if (!isWrittenInRows(op)) {
        return;
      }
      Value result = op->getResult(0);
      auto type = cast<RankedTensorType>(result.getType());
      if (type.getRank() > 1 && type.hasStaticShape()) {
        flatten(result, type);
      }
    });
  }
};

} // namespace
} // namespace mlir::alpa
