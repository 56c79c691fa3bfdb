//===- MaterializationLookUps.cpp - What is stored for look-ups -----------===//

#include "cpp/analysis/Materialization.h"
#include "cpp/analysis/Readers.h"
#include "dialects/alpa/Sharding.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// How many sums take a summand that is looked up where XLA for H100 has each
/// look it up by itself, and how many bytes of it stand for one more. It does
/// so for scores of 512 by 512 places in 6 layers of 12 or 16 heads and in 8 or
/// 12 layers of 8, of 256 by 256 in 8 layers of 8 heads, and of 1,024 by 1,024
/// in 4 layers of 8; it does not in 6 layers of 8 and 4 of 12 of the first,
/// and in 2 layers of 8 and 3 of 4 of the last, whatever the number of
/// examples.
static constexpr double kSums = 8, kBytesPerSum = 6 << 20;

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
    return it->second > 1 &&
           it->second + getTensorBytes(found.getType()) / kBytesPerSum >= kSums;
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
