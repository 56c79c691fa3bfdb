//===- Readers.cpp - How often a value is computed again ------------------===//

#include "cpp/analysis/Readers.h"

#include "cpp/analysis/DataFlow.h"
#include "dialects/alpa/Sharding.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

/// How far it is looked for where the readers of a value come together. Keeps
/// the analysis linear.
static constexpr unsigned kMaxChain = 8;

bool isRectifier(Operation *op) {
  return isa_and_nonnull<stablehlo::MaxOp>(op) &&
         llvm::any_of(op->getOperands(), isZero);
}

bool isReadAgain(Value value) {
  int64_t numRead = 0;
  for (Operation *user : value.getUsers()) {
    bool isSlice = isa<stablehlo::SliceOp, stablehlo::DynamicSliceOp>(user);
    numRead +=
        countElements(isSlice ? user->getResult(0).getType() : value.getType());
  }
  return numRead > countElements(value.getType());
}

unsigned countLarge(ArrayRef<Value> sources, Value value) {
  auto numElements = static_cast<double>(countElements(value.getType()));
  return llvm::count_if(sources, [&](Value source) {
    return static_cast<double>(countElements(source.getType())) >=
           kLargePart * numElements;
  });
}

bool isReturned(Value value) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    return user->hasTrait<OpTrait::IsTerminator>() &&
           user->getParentRegion() == value.getParentRegion();
  });
}

/// The operators that a chain of single readers goes through.
static SmallVector<Operation *> getChain(Operation *op, FusionRoles &roles) {
  SmallVector<Operation *> chain{op};
  while (chain.size() < kMaxChain &&
         roles.get(chain.back()) == FusionRole::Fused &&
         chain.back()->hasOneUse()) {
    chain.push_back(*chain.back()->user_begin());
  }
  return chain;
}

bool isReadThrough(Value value, Operation *op, FusionRoles &roles) {
  while (value.hasOneUse()) {
    Operation *user = *value.user_begin();
    if (user == op) {
      return true;
    }
    FusionRole role = roles.get(user);
    if ((role != FusionRole::Fused && role != FusionRole::View) ||
        user->getNumResults() != 1) {
      return false;
    }
    value = user->getResult(0);
  }
  return false;
}

bool rejoins(Value value, FusionRoles &roles) {
  SmallVector<Operation *> shared = getChain(*value.user_begin(), roles);
  for (Operation *user : value.getUsers()) {
    SmallVector<Operation *> chain = getChain(user, roles);
    llvm::erase_if(
        shared, [&](Operation *op) { return !llvm::is_contained(chain, op); });
  }
  return llvm::any_of(shared, [&](Operation *op) {
    return roles.get(op) == FusionRole::Fused;
  });
}

} // namespace mlir::alpa
