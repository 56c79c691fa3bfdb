//===- JoinedUpdates.cpp - Updates that a gather waits for ----------------===//

#include "cpp/analysis/JoinedUpdates.h"

#include "cpp/analysis/Dependence.h"
#include "dialects/alpa/Sharding.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

static bool isSent(Operation *op) {
  return llvm::any_of(op->getUsers(), isAsynchronous);
}

/// True for what XLA leaves out: dimensions of one element are not reversed.
static bool isIdentity(Operation *op) {
  auto reverse = dyn_cast<stablehlo::ReverseOp>(op);
  return reverse && llvm::all_of(reverse.getDimensions(), [&](int64_t dim) {
           return reverse.getType().getDimSize(dim) == 1;
         });
}

/// The argument that a value is computed from alone, element by element or in
/// another order; null if there is none.
static BlockArgument getParameter(Value value, FusionRoles &roles) {
  while (Operation *maker = value.getDefiningOp()) {
    if (maker->getNumOperands() != 1 ||
        (roles.get(maker) != FusionRole::Fused &&
         roles.get(maker) != FusionRole::View) ||
        countElements(maker->getOperand(0).getType()) !=
            countElements(value.getType())) {
      return {};
    }
    value = maker->getOperand(0);
  }
  return dyn_cast<BlockArgument>(value);
}

/// The operator that reads a parameter and makes its next value; null if there
/// is none.
static Operation *findUpdate(BlockArgument parameter, FusionRoles &roles) {
  for (Operation *user : parameter.getUsers()) {
    bool isUpdate = user->getBlock() == parameter.getOwner() &&
                    user->getNumOperands() > 1 && user->getNumResults() == 1 &&
                    roles.get(user) == FusionRole::Fused &&
                    user->getResult(0).getType() == parameter.getType() &&
                    llvm::any_of(user->getUsers(), [](Operation *reader) {
                      return reader->hasTrait<OpTrait::IsTerminator>();
                    });
    if (isUpdate) {
      return user;
    }
  }
  return nullptr;
}

DenseMap<Operation *, Operation *> findJoinedUpdates(Block &block,
                                                     FusionRoles &roles) {
  DenseMap<Operation *, Operation *> found;
  for (Operation &op : block) {
    if (op.getNumResults() != 1 || roles.get(&op) != FusionRole::Fused ||
        isIdentity(&op) || !isSent(&op)) {
      continue;
    }
    BlockArgument parameter = getParameter(op.getResult(0), roles);
    if (!parameter || parameter.getOwner() != &block) {
      continue;
    }
    Operation *update = findUpdate(parameter, roles);
    if (update && !dependsOn(update, &op)) {
      found[&op] = update;
    }
  }
  return found;
}

} // namespace mlir::alpa
