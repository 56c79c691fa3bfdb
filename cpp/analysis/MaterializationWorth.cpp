//===- MaterializationWorth.cpp - What is better stored than made again ---===//

#include "cpp/analysis/Materialization.h"
#include "cpp/analysis/Readers.h"
#include "cpp/analysis/Schedule.h"
#include "dialects/alpa/Sharding.h"
#include "mlir/IR/TypeUtilities.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// What the second cache of an H100 holds: XLA for GPU takes what is larger to
/// be read more slowly.
static constexpr double kCacheBytes = 50 << 20;

/// Rounds of a generator of random bits (Threefry has twenty), and operators
/// among which they are looked for.
static constexpr unsigned kRounds = 8, kMostOfMask = 128;

/// True for what is told from random bits, such as the mask of a dropout.
/// Generators mix their counters in rounds, each of which ends in an exclusive
/// or.
static bool isOfRandomBits(Value mask) {
  SmallVector<Operation *> work{mask.getDefiningOp()};
  llvm::SmallDenseSet<Operation *, 32> seen;
  unsigned numRounds = 0;
  while (!work.empty() && seen.size() < kMostOfMask) {
    Operation *op = work.pop_back_val();
    if (!op || !seen.insert(op).second) {
      continue;
    }
    if (isa<stablehlo::XorOp>(op) && ++numRounds >= kRounds) {
      return true;
    }
    for (Value operand : op->getOperands()) {
      work.push_back(operand.getDefiningOp());
    }
  }
  return false;
}

/// True for what a round of a generator of random bits mixes: XLA for TPU makes
/// one kernel of as many rounds as a loop takes at a time.
static bool isRound(Value value) {
  return getElementTypeOrSelf(value.getType()).isInteger(32) &&
         isa<stablehlo::AddOp, stablehlo::XorOp>(value.getDefiningOp());
}

/// True for what is computed with a parameter that was gathered.
static bool isOfGathered(Value value, ArrayRef<Value> sources) {
  return llvm::any_of(sources, [&](Value source) {
    Operation *maker = source.getDefiningOp();
    return maker && isAsynchronous(maker) && countLarge(source, value) == 0;
  });
}

bool Materialization::isWorthKeeping(Value value, const Sources &from) {
  Operation *maker = value.getDefiningOp();
  if (isa<stablehlo::CompareOp>(maker)) {
    return isOfRandomBits(value);
  }
  auto number = dyn_cast<FloatType>(getElementTypeOrSelf(value.getType()));
  return isExpensive(maker) &&
         ((number && number.getWidth() < 32) ||
          (isOfGathered(value, from) && !isMoved(maker) &&
           getTensorBytes(value.getType()) > kCacheBytes));
}

bool Materialization::isReducedInOtherShape(Value value, const Sources &from) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor && llvm::is_contained(tensor.getShape(), 1) &&
         isMoved(value.getDefiningOp()) && from.size() == 1 &&
         countLarge(from, value) == 1 &&
         getTensorBytes(from.front().getType()) <
             getTensorBytes(value.getType()) &&
         llvm::any_of(
             value.getUsers(),
             [](Operation *user) { return isa<stablehlo::ReduceOp>(user); });
}

/// True for what nothing reads but its positive part, and the comparison that
/// says where it is positive: XLA for GPU writes the former, and computes both
/// from two values as fast as it would read the sum of them again.
static bool isReadByRectifier(Value value) {
  return value.hasNUses(2) && llvm::all_of(value.getUsers(), [](Operation *op) {
           return isRectifier(op) || isa<stablehlo::CompareOp>(op);
         });
}

bool Materialization::isWorthStoring(Value value, const Sources &from) {
  if (getTensorBytes(value.getType()) == 0 || value.hasOneUse() ||
      value.use_empty() ||
      (options.backend == Backend::Tpu && isRound(value))) {
    return false;
  }
  bool isAgain = options.backend == Backend::Gpu && isReadByRectifier(value);
  unsigned most = isAgain ? 2 : 1;
  return (options.savesTime && options.backend == Backend::Gpu &&
          (isWorthKeeping(value, from) ||
           isReducedInOtherShape(value, from))) ||
         (countLarge(from, value) > most && !rejoins(value, roles) &&
          (isReadAgain(value) ||
           (options.backend == Backend::Tpu && isEpilogue(from, value))));
}

} // namespace mlir::alpa
