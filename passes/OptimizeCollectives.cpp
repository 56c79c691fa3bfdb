//===- OptimizeCollectives.cpp - Reshards that start from others ----------===//

#include "cpp/analysis/Entry.h"
#include "cpp/analysis/ReshardPlanner.h"
#include "cpp/analysis/ReshardReuse.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_OPTIMIZECOLLECTIVES
#include "passes/Passes.h.inc"

namespace {

struct OptimizeCollectives
    : impl::OptimizeCollectivesBase<OptimizeCollectives> {
  using OptimizeCollectivesBase::OptimizeCollectivesBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry)) {
      return signalPassFailure();
    }
    FailureOr<MeshAttr> planned = getPlannedMesh(getOperation());
    if (failed(planned)) {
      return signalPassFailure();
    }
    MeshAttr mesh = *planned;
    ReshardPlanner planner(mesh.getSizes());
    ReshardReuse reuse(*entry, reach);
    // In order of the program: `earlier` are the reshards of the same value.
    DenseMap<Value, SmallVector<ReshardOp>> reshardsOf;
    entry->walk<WalkOrder::PreOrder>([&](ReshardOp reshard) {
      SmallVector<ReshardOp> &earlier = reshardsOf[reshard.getOperand()];
      double best = getMoved(planner, mesh, reshard, reshard.getSource());
      for (ReshardOp other : earlier) {
        if (other->getBlock() != reshard->getBlock() ||
            !reuse.serves(other, reshard)) {
          continue;
        }
        double moved = getMoved(planner, mesh, reshard, other.getTarget());
        if (moved < best) {
          best = moved;
          reshard.getOperandMutable().assign(other.getResult());
          reshard.setSourceAttr(other.getTarget());
        }
      }
      earlier.push_back(reshard);
    });
  }

  /// Elements through a device's link, weighted as in ReshardPlanner.
  double getMoved(ReshardPlanner &planner, MeshAttr mesh, ReshardOp reshard,
                  ShardingAttr source) {
    unsigned numAxes = mesh.getNumAxes();
    double moved = 0;
    for (const ReshardStep &step :
         planner.getPlan(reshard.getType().getShape(), getRow(source, numAxes),
                         getRow(reshard.getTarget(), numAxes))) {
      moved += planner.getMovedElements(step);
    }
    return moved;
  }
};

} // namespace
} // namespace mlir::alpa
