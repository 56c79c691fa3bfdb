//===- CompareMaxima.cpp - Where a positive part is positive --------------===//

#include "passes/Passes.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/Entry.h"
#include "cpp/analysis/FusionRole.h"
#include "cpp/analysis/Schedule.h"
#include "mlir/IR/Builders.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_COMPAREMAXIMA
#include "passes/Passes.h.inc"

using stablehlo::ComparisonDirection;

/// True for a comparison that is `value > 0`.
static bool asksWherePositive(stablehlo::CompareOp op, Value value) {
  if (op.getCompareType() == stablehlo::ComparisonType::TOTALORDER) {
    return false;
  }
  ComparisonDirection direction = op.getComparisonDirection();
  return (direction == ComparisonDirection::GT && op.getLhs() == value &&
          isZero(op.getRhs())) ||
         (direction == ComparisonDirection::LT && op.getRhs() == value &&
          isZero(op.getLhs()));
}

/// True for what a kernel makes, perhaps in another shape and with something
/// smaller added, and nothing else reads: it lies in memory for its readers.
static bool isMadeAlone(Value value, FusionRoles &roles) {
  Operation *maker = value.getDefiningOp();
  if (!maker) {
    return false;
  }
  FusionRole role = roles.get(maker);
  if (role == FusionRole::Kernel) {
    return true;
  }
  auto isMadeAloneFor = [&](Value operand) {
    return operand.hasOneUse() && isMadeAlone(operand, roles);
  };
  if (role == FusionRole::View) {
    return isMadeAloneFor(maker->getOperand(0));
  }
  auto isRepeated = [](Value operand) {
    return operand.getDefiningOp<stablehlo::BroadcastInDimOp>() != nullptr;
  };
  return isa<stablehlo::AddOp>(maker) &&
         ((isRepeated(maker->getOperand(0)) &&
           isMadeAloneFor(maker->getOperand(1))) ||
          (isRepeated(maker->getOperand(1)) &&
           isMadeAloneFor(maker->getOperand(0))));
}

/// Has comparisons read the positive part of a value in its place, if nothing
/// else reads that, and says whether. Behind a barrier: XLA computes a maximum
/// again where it is compared, from what would stay for that.
static bool compareMaximum(stablehlo::MaxOp maximum, FusionRoles &roles) {
  bool isFirst = isZero(maximum.getRhs());
  // What is computed again in the backward phase does not stay for it.
  if ((!isFirst && !isZero(maximum.getLhs())) ||
      getPhase(maximum) == kBackwardPhase) {
    return false;
  }
  Value value = isFirst ? maximum.getLhs() : maximum.getRhs();
  SmallVector<stablehlo::CompareOp> comparisons;
  for (Operation *user : value.getUsers()) {
    auto comparison = dyn_cast<stablehlo::CompareOp>(user);
    if (user == maximum) {
      continue;
    }
    if (!comparison || !asksWherePositive(comparison, value) ||
        user->getBlock() != maximum->getBlock() ||
        !maximum->isBeforeInBlock(user)) {
      return false;
    }
    comparisons.push_back(comparison);
  }
  if (comparisons.empty() || !isMadeAlone(value, roles)) {
    return false;
  }
  OpBuilder builder(maximum->getContext());
  builder.setInsertionPointAfter(maximum);
  auto barrier = stablehlo::OptimizationBarrierOp::create(
      builder, maximum.getLoc(), maximum.getType(), maximum.getResult());
  maximum.getResult().replaceAllUsesExcept(barrier->getResult(0), barrier);
  for (stablehlo::CompareOp comparison : comparisons) {
    comparison->replaceUsesOfWith(value, barrier->getResult(0));
  }
  return true;
}

namespace {

struct CompareMaxima : impl::CompareMaximaBase<CompareMaxima> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry)) {
      return signalPassFailure();
    }
    // Programs of one device are as they were measured
    // (benchmarks/measured/steps.csv).
    if (!hasCollectives(*entry)) {
      return;
    }
    FusionRoles roles(Backend::Gpu);
    unsigned numCompared = 0;
    entry->walk([&](stablehlo::MaxOp maximum) {
      numCompared += compareMaximum(maximum, roles);
    });
    if (numCompared > 0) {
      entry->emitRemark() << "positive parts that are compared: "
                          << numCompared;
    }
  }
};

} // namespace
} // namespace mlir::alpa
