//===- GradientCuts.cpp - Where a backward phase can wait -----------------===//

#include "cpp/analysis/GradientCuts.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/HostMoves.h"
#include "mlir/IR/OpDefinition.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

/// Longer sums of columns are split in two, of which the first joins what makes
/// its operand (`ReductionDimensionRaceFreeBound` of XLA for GPU).
static constexpr int64_t kSplitReduction = 4096;

bool isShortColumnSum(Operation *op, int64_t numDevices) {
  auto reduce = dyn_cast<stablehlo::ReduceOp>(op);
  if (!reduce) {
    return false;
  }
  auto input = cast<RankedTensorType>(reduce.getInputs()[0].getType());
  if (llvm::is_contained(reduce.getDimensions(), input.getRank() - 1)) {
    return false;
  }
  int64_t length = 1;
  for (int64_t dim : reduce.getDimensions()) {
    length *= input.getDimSize(dim);
  }
  return length <= kSplitReduction * numDevices;
}

bool isAwaited(Operation *op, FusionRoles &roles) {
  return roles.get(op) == FusionRole::Kernel && !isAsynchronous(op) &&
         !isHostMove(op) && !op->hasTrait<OpTrait::IsTerminator>();
}

llvm::DenseSet<Operation *> findUrgent(Block &block, FusionRoles &roles) {
  llvm::DenseSet<Operation *> urgent;
  for (Operation &op : llvm::reverse(block)) {
    bool isUrgent = llvm::any_of(op.getUsers(), [&](Operation *user) {
      Operation *inBlock = block.findAncestorOpInBlock(*user);
      return inBlock && (isAwaited(inBlock, roles) || urgent.contains(inBlock));
    });
    if (isUrgent) {
      urgent.insert(&op);
    }
  }
  return urgent;
}

namespace {

/// Goes through a block once.
class CutFinder {
public:
  CutFinder(Block &block, FusionRoles &roles,
            const llvm::DenseSet<Operation *> &urgent, int64_t numDevices)
      : block(block), roles(roles), urgent(urgent), numDevices(numDevices) {}

  std::vector<GradientCut> run() {
    for (Operation &op : block) {
      if (!gradients.empty() && urgent.contains(&op) && isAwaited(&op, roles)) {
        cut(op);
      }
      note(op);
    }
    return std::move(cuts);
  }

private:
  /// The kernels that read a value as it is, or in another shape; two at most.
  unsigned countKernels(Value value) {
    unsigned number = 0;
    for (Operation *user : value.getUsers()) {
      FusionRole role = roles.get(user);
      number += role == FusionRole::Kernel ? 1
                : role == FusionRole::View && user->getNumResults() > 0
                    ? countKernels(user->getResult(0))
                    : 0;
      if (number > 1) {
        break;
      }
    }
    return number;
  }

  /// True for what lies in memory whether something waits for it or not: what
  /// is more than a function that the one kernel which reads it computes.
  bool isStored(Value value) {
    while (roles.get(value.getDefiningOp()) == FusionRole::View) {
      if (countKernels(value) > 1) {
        return true;
      }
      value = value.getDefiningOp()->getOperand(0);
      if (!value.getDefiningOp()) {
        return false;
      }
    }
    FusionRole role = roles.get(value.getDefiningOp());
    return role == FusionRole::Kernel || role == FusionRole::Root ||
           (role == FusionRole::Fused && countKernels(value) > 1);
  }

  /// Makes a cut in front of a kernel, if it reads something that can wait: of
  /// several values the one that is made last.
  void cut(Operation &kernel) {
    Value last;
    for (Value operand : kernel.getOperands()) {
      Operation *maker = operand.getDefiningOp();
      if (maker && maker->getBlock() == &block &&
          isa<RankedTensorType>(operand.getType()) && isStored(operand) &&
          (!last || last.getDefiningOp()->isBeforeInBlock(maker))) {
        last = operand;
      }
    }
    if (last) {
      cuts.push_back({&kernel, last, std::exchange(gradients, {})});
      ofGradients.clear();
    }
  }

  void note(Operation &op) {
    bool isOfGradient = false;
    bool isOfSent = isAsynchronous(&op) && !urgent.contains(&op);
    forEachUsedValue(&op, [&](Value used) {
      isOfGradient |= ofGradients.contains(used.getDefiningOp());
      isOfSent |= ofSent.contains(used.getDefiningOp());
    });
    bool isGradient =
        op.getNumResults() == 1 &&
        isa<RankedTensorType>(op.getResult(0).getType()) &&
        !urgent.contains(&op) &&
        (isAwaited(&op, roles) || (roles.get(&op) == FusionRole::Root &&
                                   isShortColumnSum(&op, numDevices)));
    if (isOfSent) {
      ofSent.insert(&op);
    } else if (isOfGradient || isGradient) {
      ofGradients.insert(&op);
    }
    // What is computed of a gradient follows it, and nothing is to wait for
    // what devices send of one.
    if (isGradient && !isOfGradient && !isOfSent) {
      gradients.push_back(op.getResult(0));
    }
  }

  Block &block;
  FusionRoles &roles;
  const llvm::DenseSet<Operation *> &urgent;
  int64_t numDevices;
  /// Gradients since the last cut.
  SmallVector<Value> gradients;
  /// What is computed of them, and of what devices have sent of any.
  llvm::DenseSet<Operation *> ofGradients, ofSent;
  std::vector<GradientCut> cuts;
};

} // namespace

std::vector<GradientCut>
findGradientCuts(Block &block, FusionRoles &roles,
                 const llvm::DenseSet<Operation *> &urgent,
                 int64_t numDevices) {
  return CutFinder(block, roles, urgent, numDevices).run();
}

} // namespace mlir::alpa
