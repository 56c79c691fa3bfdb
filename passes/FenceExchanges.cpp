//===- FenceExchanges.cpp - Operands of all-to-alls of one layout ---------===//

#include "passes/Passes.h"

#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_FENCEEXCHANGES
#include "passes/Passes.h.inc"

namespace {

struct FenceExchanges : impl::FenceExchangesBase<FenceExchanges> {
  void runOnOperation() override {
    getOperation().walk([](stablehlo::AllToAllOp op) {
      OpBuilder builder(op);
      auto fence = stablehlo::OptimizationBarrierOp::create(
          builder, op.getLoc(), op.getOperandTypes(), op.getOperands());
      op->setOperands(fence.getResults());
    });
  }
};

} // namespace
} // namespace mlir::alpa
