//===- HostMoves.cpp - Between a device and the host ----------------------===//

#include "cpp/analysis/HostMoves.h"

#include "cpp/analysis/Schedule.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

static constexpr llvm::StringLiteral kTarget = "annotate_device_placement";
static constexpr llvm::StringLiteral kFrontendAttrName =
    "mhlo.frontend_attributes";
static constexpr llvm::StringLiteral kPlacementAttrName =
    "_xla_buffer_placement";

/// The memory that an operator moves its operand to; empty if it moves nothing.
static StringRef getPlacement(Operation *op) {
  auto call = dyn_cast<stablehlo::CustomCallOp>(op);
  if (!call || call.getCallTargetName() != kTarget) {
    return {};
  }
  auto attributes = call->getAttrOfType<DictionaryAttr>(kFrontendAttrName);
  auto placement = attributes ? attributes.getAs<StringAttr>(kPlacementAttrName)
                              : StringAttr();
  return placement ? placement.getValue() : StringRef();
}

bool movesToHost(Operation *op) { return getPlacement(op).ends_with("host"); }

bool movesToDevice(Operation *op) { return getPlacement(op) == "device"; }

bool isHostMove(Operation *op) { return movesToHost(op) || movesToDevice(op); }

namespace {

/// Puts the operators of a block in order; see `placeMoves`.
class MovePlacement {
public:
  MovePlacement(ArrayRef<Operation *> order, FusionRoles &roles)
      : block(order.front()->getBlock()) {
    for (Operation *op : order) {
      classify(op, roles);
    }
    for (Operation *op : order) {
      if (!waiting.contains(op)) {
        placeWithWaiting(op);
      }
    }
    for (Operation *op : order) {
      place(op);
    }
  }

  std::vector<Operation *> placed;

private:
  /// Waits for a reader what is moved to the device, and what is made of that
  /// and of nothing else.
  void classify(Operation *op, FusionRoles &roles) {
    FusionRole role = roles.get(op);
    bool isAny = movesToDevice(op), isAll = true, isOfNothing = true;
    for (Value operand : op->getOperands()) {
      Operation *maker = operand.getDefiningOp();
      isAny |= waiting.contains(maker);
      isOfNothing &= ofNothing.contains(maker);
      isAll &= waiting.contains(maker) || ofNothing.contains(maker);
    }
    bool isComputed = role == FusionRole::Fused || role == FusionRole::View ||
                      role == FusionRole::Generated;
    if (movesToDevice(op) || (isComputed && isAny && isAll)) {
      waiting.insert(op);
    } else if (isComputed && isOfNothing) {
      ofNothing.insert(op);
    }
  }

  void placeWithWaiting(Operation *op) {
    placeBehindOperands(
        op,
        [&](Operation *maker) {
          return waiting.contains(maker) && !done.contains(maker);
        },
        [&](Operation *next) { place(next); });
  }

  void place(Operation *op) {
    if (!done.insert(op).second) {
      return;
    }
    placed.push_back(op);
    for (Operation *user : op->getUsers()) {
      if (user->getBlock() == block && movesToHost(user) &&
          done.insert(user).second) {
        placed.push_back(user);
      }
    }
  }

  Block *block;
  llvm::DenseSet<Operation *> waiting, ofNothing, done;
};

} // namespace

void placeMoves(std::vector<Operation *> &order, FusionRoles &roles) {
  if (llvm::any_of(order, isHostMove)) {
    order = MovePlacement(order, roles).placed;
  }
}

} // namespace mlir::alpa
