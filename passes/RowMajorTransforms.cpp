//===- RowMajorTransforms.cpp - Fourier transforms in row-major layout ----===//

#include "passes/Passes.h"

#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_ROWMAJORTRANSFORMS
#include "passes/Passes.h.inc"

namespace {

/// Hands a result on by way of one dimension, of which there is one layout.
static void flatten(stablehlo::FftOp op) {
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  Location loc = op.getLoc();
  auto type = cast<RankedTensorType>(op.getType());
  auto flat = stablehlo::ReshapeOp::create(
      builder, loc, type.clone({type.getNumElements()}), op.getResult());
  auto fence = stablehlo::OptimizationBarrierOp::create(
      builder, loc, flat->getResultTypes(), flat->getResults());
  auto shaped =
      stablehlo::ReshapeOp::create(builder, loc, type, fence->getResult(0));
  op.getResult().replaceAllUsesExcept(shaped, flat);
}

struct RowMajorTransforms : impl::RowMajorTransformsBase<RowMajorTransforms> {
  void runOnOperation() override {
    getOperation().walk([](stablehlo::FftOp op) {
      auto type = cast<RankedTensorType>(op.getType());
      if (type.getRank() > 1 && type.hasStaticShape()) {
        flatten(op);
      }
    });
  }
};

} // namespace
} // namespace mlir::alpa
