//===- OrderGradients.cpp - Gradients where the backward phase makes them -===//

#include "passes/Passes.h"

#include "cpp/analysis/Entry.h"
#include "cpp/analysis/GradientCuts.h"
#include "cpp/analysis/Schedule.h"
#include "cpp/transforms/Reordering.h"
#include "mlir/IR/Builders.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_ORDERGRADIENTS
#include "passes/Passes.h.inc"

namespace {

/// The sum to which a micro-batch adds its gradient, if that is what a gradient
/// is for and is there before `next`: products are added to it by their kernel.
static Value getSum(Value gradient, Operation *next) {
  if (!gradient.hasOneUse()) {
    return gradient;
  }
  auto sum = dyn_cast<stablehlo::AddOp>(*gradient.getUsers().begin());
  bool isOfArgument =
      sum && sum->getBlock() == next->getBlock() &&
      llvm::any_of(sum->getOperands(), llvm::IsaPred<BlockArgument>);
  return isOfArgument && sum->isBeforeInBlock(next) ? sum.getResult()
                                                    : gradient;
}

/// A kernel waits for the gradients before it.
static void wait(const GradientCut &cut) {
  SmallVector<Value> operands{cut.read};
  for (Value gradient : cut.gradients) {
    operands.push_back(getSum(gradient, cut.kernel));
  }
  OpBuilder builder(cut.kernel);
  auto barrier = stablehlo::OptimizationBarrierOp::create(
      builder, cut.kernel->getLoc(), TypeRange(ValueRange(operands)), operands);
  // Whatever else reads what the kernel reads does not wait: a sum of columns
  // is computed with what is summed up.
  cut.kernel->replaceUsesOfWith(cut.read, barrier->getResult(0));
  for (auto [operand, result] :
       llvm::drop_begin(llvm::zip(operands, barrier->getResults()))) {
    operand.replaceAllUsesExcept(result, barrier);
  }
  moveUsersBehind(cut.gradients.front().getDefiningOp(), barrier);
}

/// Of the cuts that wait for gradients of kernels, and not of biases alone, the
/// first, with the gradients that are made so, if they are those of a
/// convolution.
static std::vector<GradientCut> findHead(ArrayRef<GradientCut> cuts) {
  for (GradientCut cut : cuts) {
    llvm::erase_if(cut.gradients, [](Value gradient) {
      return isa<stablehlo::ReduceOp>(gradient.getDefiningOp());
    });
    if (!cut.gradients.empty()) {
      bool isOfConvolution = llvm::all_of(cut.gradients, [](Value gradient) {
        return isa<stablehlo::ConvolutionOp>(gradient.getDefiningOp());
      });
      return isOfConvolution ? std::vector{cut} : std::vector<GradientCut>();
    }
  }
  return {};
}

struct OrderGradients : impl::OrderGradientsBase<OrderGradients> {
  using OrderGradientsBase::OrderGradientsBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry)) {
      return signalPassFailure();
    }
    // Nothing runs beside anything.
    if (!hasCollectives(*entry)) {
      return;
    }
    Block &block = entry->getBody().front();
    FusionRoles roles(ofHead ? Backend::Tpu : Backend::Gpu);
    std::vector<GradientCut> cuts =
        findGradientCuts(block, roles, findUrgent(block, roles));
    if (ofHead) {
      cuts = findHead(cuts);
    }
    llvm::for_each(cuts, wait);
    // Whoever tries whether all waiting pays asks whether anything does.
    if (!cuts.empty() && !ofHead) {
      entry->emitRemark() << "kernels that wait for gradients: " << cuts.size();
    }
  }
};

} // namespace
} // namespace mlir::alpa
