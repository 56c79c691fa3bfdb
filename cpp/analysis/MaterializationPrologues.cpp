//===- MaterializationPrologues.cpp - What products compute of operands ---===//

#include "cpp/analysis/Materialization.h"
#include "cpp/analysis/ProductEpilogues.h"
#include "cpp/analysis/Readers.h"
#include "dialects/alpa/Sharding.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// What a product computes an operand from inside of itself
/// (`kMaxParameterPerDotOperand` of XLA for GPU).
static constexpr unsigned kMaxPrologueSources = 4;

bool Materialization::isNarrowed(const Sources &from, Value result) {
  double bytes = getTensorBytes(result.getType());
  return llvm::any_of(from, [&](Value source) {
    return getStoredRatio(source) * getTensorBytes(source.getType()) > bytes;
  });
}

bool Materialization::isRoundedOnce(const Sources &from, Value result) {
  auto convert = result.getDefiningOp<stablehlo::ConvertOp>();
  return convert &&
         getTensorBytes(convert.getOperand().getType()) >
             getTensorBytes(result.getType()) &&
         (isNarrowed(from, result) || isMoved(convert)) &&
         countProducts(result) > 1;
}

bool Materialization::isEpilogue(const Sources &from, Value result) {
  auto isHeavy = [&](Value source) {
    return getTensorBytes(source.getType()) >=
           kLargePart * getTensorBytes(result.getType());
  };
  auto getTime = [&](Value source) {
    Operation *maker = source.getDefiningOp();
    return maker ? points.lookup(maker) : -1;
  };
  Value last = *llvm::max_element(from, [&](Value left, Value right) {
    return getTime(left) < getTime(right);
  });
  auto isLast = [&](Value source) {
    Operation *maker = source.getDefiningOp();
    if (!maker || !isHeavy(source) || !takesPrologue(maker, options.backend)) {
      return false;
    }
    return source == last ||
           (isReadThrough(source, result.getDefiningOp(), roles) &&
            mayWaitFor(maker, from));
  };
  return llvm::count_if(from, isHeavy) > 1 && llvm::any_of(from, isLast);
}

bool Materialization::isOfOne(const Sources &from) const {
  // Products of XLA for TPU compute the places of slices as well.
  return from.size() == 1 || (options.backend == Backend::Tpu &&
                              llvm::count_if(from, [](Value source) {
                                return countElements(source.getType()) > 1;
                              }) == 1);
}

bool Materialization::isFunctionOfOne(const Sources &from, Value result) {
  if (options.backend == Backend::Tpu) {
    return from.size() == 1 ||
           (!isRoundedOnce(from, result) && !isEpilogue(from, result));
  }
  if (from.size() == 1) {
    return !isNarrowed(from, result) || countProducts(result) == 1;
  }
  return from.size() <= kMaxPrologueSources && countLarge(from, result) == 1 &&
         llvm::none_of(
             from, [&](Value source) { return normalizers.contains(source); });
}

unsigned Materialization::countProducts(Value value) {
  unsigned count = 0;
  llvm::SmallDenseSet<Operation *, 4> seen;
  for (Operation *user : value.getUsers()) {
    if (!seen.insert(user).second) {
      continue;
    }
    if (takesPrologue(user, options.backend)) {
      ++count;
    } else if (roles.get(user) == FusionRole::View) {
      count += countProducts(user->getResult(0));
    }
  }
  return count;
}

bool Materialization::isReadByProductsOnly(Value value) {
  return options.backend == Backend::Tpu &&
         llvm::all_of(value.getUsers(), [&](Operation *user) {
           return takesPrologue(user, options.backend) ||
                  (roles.get(user) == FusionRole::View &&
                   isReadByProductsOnly(user->getResult(0)));
         });
}

} // namespace mlir::alpa
