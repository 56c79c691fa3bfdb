//===- ReturnedOrders.cpp - What is made again to be returned -------------===//

#include "cpp/analysis/ReturnedOrders.h"

#include "cpp/analysis/MemoryOrder.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

static ArrayRef<int64_t> getShape(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

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

/// The values of a block that lie in the order of what is gathered or scattered
/// along another dimension than the first.
static llvm::DenseSet<Value> findMoved(Block &block) {
  llvm::DenseSet<Value> found;
  SmallVector<Value> work;
  auto add = [&](Value value) {
    if (takesOrder(value) && found.insert(value).second) {
      work.push_back(value);
    }
  };
  auto addAlike = [&](Operation *op, Value value) {
    if (op->getBlock() != &block || !keepsOrder(op) ||
        getShape(op->getResult(0)) != getShape(value)) {
      return;
    }
    add(op->getResult(0));
    for (Value operand : op->getOperands()) {
      if (getShape(operand) == getShape(value)) {
        add(operand);
      }
    }
  };
  for (Operation &op : block) {
    if (makesMoved(&op)) {
      add(op.getResult(0));
    }
  }
  while (!work.empty()) {
    Value value = work.pop_back_val();
    addAlike(value.getDefiningOp(), value);
    for (Operation *user : value.getUsers()) {
      addAlike(user, value);
    }
  }
  return found;
}

llvm::DenseSet<Value> findMadeAgain(Block &block, FusionRoles &roles) {
  llvm::DenseSet<Value> moved = findMoved(block), again;
  if (moved.empty()) {
    return again;
  }
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
