//===- Communication.cpp - What a planned module moves --------------------===//

#include "cpp/analysis/Communication.h"

#include "cpp/analysis/Entry.h"
#include "cpp/analysis/StrategyGraph.h"

namespace mlir::alpa {

static double getRunsPerStep(Operation *op) {
  double count = 1;
  for (Operation *around = op->getParentOp(); around;
       around = around->getParentOp()) {
    if (auto trips = around->getAttrOfType<IntegerAttr>(kTripCountAttrName)) {
      count *= static_cast<double>(trips.getInt());
    }
  }
  return count;
}

FailureOr<std::vector<CollectiveVolume>> getCommunication(ModuleOp module) {
  MeshAttr mesh = getMesh(module);
  FailureOr<func::FuncOp> entry = getEntryFunction(module);
  if (failed(entry)) {
    return failure();
  }
  if (!mesh) {
    return module.emitError()
           << "has no '" << kMeshAttrName << "': it has not been planned";
  }
  ReshardPlanner planner(mesh.getSizes());
  std::vector<CollectiveVolume> volumes;
  entry->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto reshard = dyn_cast<ReshardOp>(op)) {
      RankedTensorType type = reshard.getType();
      double elementBytes = getElementBytes(type.getElementType());
      for (const ReshardStep &step : planner.getPlan(
               type.getShape(), getRow(reshard.getSource(), mesh.getNumAxes()),
               getRow(reshard.getTarget(), mesh.getNumAxes()))) {
        if (step.kind != CollectiveKind::Local) {
          volumes.push_back({getReadableName(op), step.kind, step.getAxesMask(),
                             step.elements * elementBytes, getRunsPerStep(op)});
        }
      }
      return;
    }
    std::optional<ShardingRule> rule = getShardingRule(op);
    auto strategy = op->getAttrOfType<StrategyAttr>(kStrategyAttrName);
    if (!rule || !strategy || !op->hasAttr(kResultsAttrName)) {
      return;
    }
    uint32_t combined = 0;
    for (auto [axis, entryOfAxis] : llvm::enumerate(strategy.getAxes())) {
      if (entryOfAxis < 0 ||
          entryOfAxis >= static_cast<int>(rule->factors.size())) {
        continue;
      }
      const Factor &factor = rule->factors[entryOfAxis];
      if (factor.kind == FactorKind::Reduction && !factor.isSum()) {
        combined |= 1u << axis;
      }
    }
    if (combined == 0) {
      return;
    }
    for (Value result : op->getResults()) {
      double shards = static_cast<double>(getNumShards(
          getRow(getSharding(result), mesh.getNumAxes()), mesh.getSizes()));
      volumes.push_back({getReadableName(op), CollectiveKind::AllReduce,
                         combined, getTensorBytes(result.getType()) / shards,
                         getRunsPerStep(op)});
    }
  });
  return volumes;
}

} // namespace mlir::alpa
