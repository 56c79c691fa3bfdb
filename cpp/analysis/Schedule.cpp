//===- Schedule.cpp - The order in which a block runs ---------------------===//

#include "cpp/analysis/Schedule.h"

#include "cpp/analysis/DataFlow.h"
#include "dialects/alpa/Alpa.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpDefinition.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

/// A kernel that others wait for. Collectives run beside them.
static bool isAwaited(Operation *op, FusionRoles &roles) {
  return roles.get(op) == FusionRole::Kernel && !isAsynchronous(op) &&
         !op->hasTrait<OpTrait::IsTerminator>();
}

bool beginsLayer(Operation *op, std::optional<int64_t> &last) {
  if (getPhase(op) != kBackwardPhase) {
    return false;
  }
  auto layer = op->getAttrOfType<IntegerAttr>(kLayerAttrName);
  bool isLower = layer && (!last || layer.getInt() < *last);
  if (isLower) {
    last = layer.getInt();
  }
  return isLower || isa<stablehlo::OptimizationBarrierOp>(op);
}

std::vector<Operation *> getSchedule(Block &block, FusionRoles &roles) {
  // Operators on the way to a kernel.
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
  llvm::DenseSet<Operation *> deferred;
  std::vector<Operation *> order, rest;
  std::optional<int64_t> layer;
  for (Operation &op : block) {
    if (beginsLayer(&op, layer)) {
      order.insert(order.end(), rest.begin(), rest.end());
      rest.clear();
      deferred.clear();
    }
    bool isDeferred = op.hasTrait<OpTrait::IsTerminator>() ||
                      (!urgent.contains(&op) &&
                       (isAwaited(&op, roles) ||
                        llvm::any_of(op.getOperands(), [&](Value operand) {
                          return deferred.contains(operand.getDefiningOp());
                        })));
    if (isDeferred) {
      deferred.insert(&op);
    }
    (isDeferred ? rest : order).push_back(&op);
  }
  order.insert(order.end(), rest.begin(), rest.end());
  return order;
}

} // namespace mlir::alpa
