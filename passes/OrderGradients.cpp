//===- OrderGradients.cpp - Gradients where the backward phase makes them -===//

#include "passes/Passes.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/Entry.h"
#include "cpp/analysis/GradientCuts.h"
#include "cpp/analysis/Schedule.h"
#include "mlir/IR/Builders.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/SetVector.h"

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

/// What stands between two operators and uses results of the second, itself or
/// by way of others, comes behind that.
static void moveUsersBehind(Operation *first, Operation *op) {
  llvm::SetVector<Operation *> late;
  late.insert(op);
  for (Operation *before = first; before != op;
       before = before->getNextNode()) {
    bool isLate = false;
    forEachUsedValue(before, [&](Value used) {
      isLate |= late.contains(used.getDefiningOp());
    });
    if (isLate) {
      late.insert(before);
    }
  }
  for (auto [user, before] :
       llvm::zip(llvm::drop_begin(late), llvm::drop_end(late))) {
    user->moveAfter(before);
  }
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

struct OrderGradients : impl::OrderGradientsBase<OrderGradients> {
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
    FusionRoles roles(Backend::Gpu);
    for (const GradientCut &cut :
         findGradientCuts(block, roles, findUrgent(block, roles))) {
      wait(cut);
    }
  }
};

} // namespace
} // namespace mlir::alpa
