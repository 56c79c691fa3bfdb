//===- MaterializationLookUps.cpp - What is stored for look-ups -----------===//

#include "cpp/analysis/Materialization.h"
#include "cpp/analysis/Readers.h"
#include "dialects/alpa/Sharding.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// From which share of a sum's bytes on the kernels of all sums look up a
/// summand, by what they read less than if it were there. XLA for H100 has them
/// do so for scores of eight examples and 512 by 512 places in 6 layers of 12
/// or 16 heads and in 8 or 12 layers of 8, and not in 6 layers of 8 heads or in
/// 4 of 12.
static constexpr double kSharedPart = 0.67;

void Materialization::noteLookUps(Value value) {
  for (OpOperand &use : value.getUses()) {
    if (isLookedUp(use, options.backend) && !isView(value)) {
      int &last = lookedUp.try_emplace(value, 0).first->second;
      last = std::max(last, points.lookup(use.getOwner()));
    }
  }
}

bool Materialization::replacesLookedUp(Value value, const Sources &from) {
  return llvm::any_of(value.getUses(),
                      [&](OpOperand &use) {
                        return isLookedUp(use, options.backend);
                      }) &&
         !isView(value, from) && llvm::any_of(from, [&](Value source) {
           return source.getDefiningOp() && countLarge(source, value) == 1 &&
                  isReadThrough(source, value.getDefiningOp(), roles);
         });
}

/// True for what moves elements, or repeats them.
static bool isPlaced(Operation *op) {
  return isa<stablehlo::BroadcastInDimOp, stablehlo::ReshapeOp,
             stablehlo::TransposeOp>(op);
}

/// The look-up whose result, moved and repeated, is a value; null if it is
/// none.
static stablehlo::GatherOp getLookUp(Value value) {
  Operation *maker = value.getDefiningOp();
  while (maker && isPlaced(maker)) {
    maker = maker->getOperand(0).getDefiningOp();
  }
  return dyn_cast_if_present<stablehlo::GatherOp>(maker);
}

/// How many operators read a value, moved and repeated.
static unsigned countReaders(Value value) {
  unsigned count = 0;
  for (Operation *user : value.getUsers()) {
    count += isPlaced(user) ? countReaders(user->getResult(0)) : 1;
  }
  return count;
}

bool Materialization::joinsLookedUp(Value value) {
  Operation *maker = value.getDefiningOp();
  if (options.backend != Backend::Gpu || !options.savesTime ||
      maker->getNumOperands() != 2 || isPlaced(maker) ||
      llvm::none_of(value.getUsers(),
                    [&](Operation *user) { return normalizes(user); })) {
    return false;
  }
  return llvm::any_of(maker->getOperands(), [&](Value operand) {
    stablehlo::GatherOp found = getLookUp(operand);
    if (!found || stored.contains(found.getResult())) {
      return false;
    }
    auto [it, isNew] = numLookUps.try_emplace(found, 0);
    if (isNew) {
      it->second = countReaders(found.getResult());
    }
    double saved = getTensorBytes(found.getType()) -
                   getTensorBytes(found.getStartIndices().getType());
    return it->second > 1 &&
           it->second * saved >= kSharedPart * getTensorBytes(value.getType());
  });
}

/// What kernels look up places of is stored for them, and for nothing else.
void Materialization::placeLookedUp() {
  for (auto &[value, end] : lookedUp) {
    int start = points.lookup(value.getDefiningOp());
    for (Value source : sources.lookup(value)) {
      lastRead[source] = std::max(lastRead.lookup(source), start);
    }
    storedValues.push_back(
        {value, start, end, getPadding(value), StoredForm::Copy});
  }
}

} // namespace mlir::alpa
