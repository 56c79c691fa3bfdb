//===- Communication.cpp - What a planned module moves --------------------===//

#include "cpp/analysis/Communication.h"

#include "cpp/analysis/Combination.h"
#include "cpp/analysis/Entry.h"
#include "cpp/analysis/OperatorShardings.h"
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
    auto interface = dyn_cast<ShardingRuleOpInterface>(op);
    if (!interface || !op->hasAttr(kResultsAttrName)) {
      return;
    }
    ShardingRule rule = interface.getShardingRule();
    SmallVector<ShardingRow> resultRows;
    for (Value result : op->getResults()) {
      resultRows.push_back(getRow(getSharding(result), mesh.getNumAxes()));
    }
    for (const VolumeStep &step : getCombinedVolumes(
             op, rule, getPlannedFactorRow(op, rule, mesh.getSizes()),
             resultRows, mesh.getSizes())) {
      volumes.push_back({getReadableName(op), step.kind, step.axes, step.bytes,
                         getRunsPerStep(op)});
    }
  });
  return volumes;
}

} // namespace mlir::alpa
