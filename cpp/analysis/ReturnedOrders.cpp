//===- ReturnedOrders.cpp - What is made again to be returned -------------===//

#include "cpp/analysis/ReturnedOrders.h"

#include "cpp/analysis/MemoryOrder.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

/// True for a collective whose result lies with another dimension in front.
static bool makesMoved(Operation *op) {
  return isa<stablehlo::AllGatherOp, stablehlo::ReduceScatterOp>(op) &&
         movesDimension(op);
}

/// True for what lies in the order that its readers want: what products make,
/// what is computed elementwise, and constants.
static bool takesOrder(Value value) {
  Operation *maker = value.getDefiningOp();
  return maker && (keepsOrder(maker) || makesMoved(maker) ||
                   isa<stablehlo::DotGeneralOp, stablehlo::BroadcastInDimOp,
                       stablehlo::ConstantOp>(maker));
}

llvm::DenseSet<Value> findMadeAgain(Block &block, FusionRoles &roles) {
  SmallVector<Value> made;
  for (Operation &op : block) {
    if (makesMoved(&op)) {
      made.push_back(op.getResult(0));
    }
  }
  llvm::DenseSet<Value> again;
  llvm::SetVector<Value> moved = findAlike(made, takesOrder);
  for (Value returned : block.getTerminator()->getOperands()) {
    bool isRead = llvm::any_of(returned.getUsers(), [&](Operation *user) {
      return roles.get(user) == FusionRole::Kernel &&
             !user->hasTrait<OpTrait::IsTerminator>();
    });
    if (isRead && moved.contains(returned) &&
        keepsOrder(returned.getDefiningOp())) {
      again.insert(returned);
    }
  }
  return again;
}

} // namespace mlir::alpa
