//===- ReshardReuse.cpp - What one reshard may serve ----------------------===//

#include "cpp/analysis/ReshardReuse.h"

#include "cpp/analysis/DataFlow.h"
#include "dialects/alpa/Sharding.h"

namespace mlir::alpa {

ReshardReuse::ReshardReuse(func::FuncOp function, unsigned reach)
    : reach(reach) {
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (!isa<ReshardOp>(op)) {
      positions.try_emplace(op, positions.size());
    }
  });
}

/// The operator that reshards in a row stand before.
static Operation *getReader(ReshardOp reshard) {
  Operation *op = reshard;
  while (isa<ReshardOp>(op)) {
    op = op->getNextNode();
  }
  return op;
}

/// True if the result takes more of a device's memory than the value that it
/// was made from, itself or through others.
static bool grows(ReshardOp reshard) {
  MeshAttr mesh = getMesh(reshard);
  ReshardOp first = reshard;
  while (auto before = first.getOperand().getDefiningOp<ReshardOp>()) {
    first = before;
  }
  auto countShards = [&](ShardingAttr sharding) {
    return getNumShards(getRow(sharding, mesh.getNumAxes()), mesh.getSizes());
  };
  return countShards(reshard.getTarget()) < countShards(first.getSource());
}

bool ReshardReuse::serves(ReshardOp reshard, Operation *user) const {
  if (!grows(reshard)) {
    return true;
  }
  Operation *first = getReader(reshard);
  bool isNear =
      reach == 0 || positions.lookup(user) - positions.lookup(first) <= reach;
  return isNear && getPhase(first) == getPhase(user) &&
         runsOnce(first) == runsOnce(user);
}

bool ReshardReuse::serves(ReshardOp reshard, ReshardOp later) const {
  return serves(reshard, getReader(later));
}

} // namespace mlir::alpa
