//===- GradientCuts.cpp - Where a backward phase can wait -----------------===//

#include "cpp/analysis/GradientCuts.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/HostMoves.h"
#include "mlir/IR/OpDefinition.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::alpa {

/// Longer sums of columns are split in two, of which the first joins what makes
/// its operand (`ReductionDimensionRaceFreeBound` of XLA for GPU).
static constexpr int64_t kSplitReduction = 4096;

/// Values that a cut lets through, at most: more of them lead on from within an
/// attention or a branch, and few from one residual layer to the next.
/// Heuristic.
static constexpr size_t kMostTaken = 4;

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
    findUses();
    for (auto [place, op] : llvm::enumerate(block)) {
      for (Value value : ending.lookup(place)) {
        taken.remove(value);
      }
      if (leading.contains(&op)) {
        cut(op, place);
      }
      note(op);
    }
    return std::move(cuts);
  }

private:
  /// Where what leads to kernels that others wait for is read last, and where
  /// it is sent last.
  void findUses() {
    for (Operation &op : llvm::reverse(block)) {
      bool leads = llvm::any_of(op.getUsers(), [&](Operation *user) {
        return leading.contains(block.findAncestorOpInBlock(*user));
      });
      if (leads || (urgent.contains(&op) && isAwaited(&op, roles))) {
        leading.insert(&op);
      }
    }
    size_t place = 0;
    for (Operation &op : block) {
      if (leading.contains(&op)) {
        forEachUsedValue(&op, [&](Value used) {
          lastRead[used] = place;
          if (isAsynchronous(&op)) {
            lastSent[used] = place;
          }
        });
      }
      ++place;
    }
  }

  /// True for what lies in memory whether something waits for it or not: what
  /// is more than a function that fusions compute, or is read by a kernel.
  bool isStored(Value value) {
    Operation *maker = value.getDefiningOp();
    FusionRole role = roles.get(maker);
    return role == FusionRole::Kernel || role == FusionRole::Root ||
           (role == FusionRole::View && maker->getOperand(0).getDefiningOp() &&
            isStored(maker->getOperand(0))) ||
           isReadByKernel(value);
  }

  bool isReadByKernel(Value value) {
    return llvm::any_of(value.getUsers(), [&](Operation *user) {
      FusionRole role = roles.get(user);
      return role == FusionRole::Kernel ||
             (role == FusionRole::View && user->getNumResults() > 0 &&
              isReadByKernel(user->getResult(0)));
    });
  }

  /// Makes a cut in front of an operator, if it is a place for one.
  void cut(Operation &op, size_t place) {
    if (gradients.empty() || taken.empty() || taken.size() > kMostTaken) {
      return;
    }
    bool isPlace = llvm::all_of(taken, [&](Value value) {
      auto it = lastSent.find(value);
      bool isSent = it != lastSent.end() && it->second >= place;
      return !isSent && isStored(value);
    });
    if (!isPlace) {
      return;
    }
    cuts.push_back({&op, taken.takeVector(), std::exchange(gradients, {})});
    ofGradients.clear();
  }

  void note(Operation &op) {
    bool isOfGradient = false;
    bool isOfSent = isAsynchronous(&op) && !leading.contains(&op);
    forEachUsedValue(&op, [&](Value used) {
      isOfGradient |= ofGradients.contains(used.getDefiningOp());
      isOfSent |= ofSent.contains(used.getDefiningOp());
    });
    bool isGradient =
        op.getNumResults() == 1 && !urgent.contains(&op) &&
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
    if (gradients.empty() || roles.get(&op) == FusionRole::Generated) {
      return;
    }
    for (Value result : op.getResults()) {
      if (auto it = lastRead.find(result); it != lastRead.end()) {
        taken.insert(result);
        ending[it->second + 1].push_back(result);
      }
    }
  }

  Block &block;
  FusionRoles &roles;
  const llvm::DenseSet<Operation *> &urgent;
  int64_t numDevices;
  /// Kernels that others wait for, and what is on the way to them.
  llvm::DenseSet<Operation *> leading;
  DenseMap<Value, size_t> lastRead, lastSent;
  DenseMap<size_t, SmallVector<Value>> ending;
  llvm::SmallSetVector<Value, 8> taken;
  SmallVector<Value> gradients;
  /// What is computed of gradients since the last cut, and of what devices have
  /// sent of any.
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
