//===- Communication.cpp - What a planned module moves --------------------===//

#include "cpp/analysis/Communication.h"

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
    uint32_t combined = 0;
    for (auto [axis, entryOfAxis] :
         llvm::enumerate(getPlannedFactorRow(op, rule, mesh.getSizes()))) {
      if (entryOfAxis >= 0 &&
          rule.factors[entryOfAxis].kind == FactorKind::Reduction &&
          rule.factors[entryOfAxis].reduction != ReductionKind::Sum) {
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
