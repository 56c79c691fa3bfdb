//===- Communication.cpp - What a planned module moves --------------------===//

#include "cpp/analysis/Communication.h"

#include "cpp/analysis/Combination.h"
#include "cpp/analysis/Entry.h"
#include "cpp/analysis/ManualVolumes.h"
#include "cpp/analysis/OperatorShardings.h"
#include "cpp/analysis/ProductRings.h"
#include "cpp/analysis/StrategyGraph.h"

namespace mlir::alpa {

/// The reshard's steps that are collectives. What goes around a ring of n does
/// so in n - 1 steps.
static void addReshard(ReshardOp reshard, MeshAttr mesh,
                       ReshardPlanner &planner, const Leeway &leeway,
                       std::vector<CollectiveVolume> &volumes) {
  RankedTensorType type = reshard.getType();
  double elementBytes = getElementBytes(type.getElementType());
  const ReshardPlan &plan = planner.getPlan(
      type.getShape(), getRow(reshard.getSource(), mesh.getNumAxes()),
      getRow(reshard.getTarget(), mesh.getNumAxes()));
  bool isScattered = isScatteredInRing(reshard);
  bool isGathered = isGatheredInRing(reshard);
  for (auto [index, step] : llvm::enumerate(plan)) {
    if (step.kind == CollectiveKind::Local) {
      continue;
    }
    CollectiveVolume volume = {
        getReadableName(reshard), step.kind,
        step.getAxesMask(),       step.elements * elementBytes,
        getRunsPerStep(reshard),  leeway.get(reshard.getResult())};
    if ((isScattered && index == 0) ||
        (isGathered && index + 1 == plan.size())) {
      auto size = static_cast<double>(mesh.getSizes()[step.axes.front()]);
      volume.kind = CollectiveKind::CollectivePermute;
      volume.bytes /= size;
      volume.count *= size - 1;
    }
    volumes.push_back(std::move(volume));
  }
}

static void addManual(ManualOp op, std::vector<CollectiveVolume> &volumes) {
  for (const ManualVolume &volume : getManualVolumes(op)) {
    const VolumeStep &step = volume.step;
    volumes.push_back({getReadableName(volume.op), step.kind, step.axes,
                       step.bytes, getRunsPerStep(op) * volume.runs});
  }
}

double getRunsPerStep(Operation *op) {
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
  Leeway leeway(*entry);
  WalkResult walk = entry->walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto reshard = dyn_cast<ReshardOp>(op)) {
      addReshard(reshard, mesh, planner, leeway, volumes);
      return WalkResult::advance();
    }
    if (auto manual = dyn_cast<ManualOp>(op)) {
      addManual(manual, volumes);
      return WalkResult::skip();
    }
    auto strategy = op->getAttrOfType<StrategyAttr>(kStrategyAttrName);
    if (!strategy || !hasShardingRule(op) || !op->hasAttr(kResultsAttrName)) {
      return WalkResult::advance();
    }
    FailureOr<OperatorRows> rows = getPlannedRows(op, mesh);
    if (failed(rows)) {
      return WalkResult::interrupt();
    }
    for (const VolumeStep &step : getCombinedVolumes(
             op, *getShardingRule(op), strategy.getRow(mesh.getNumAxes()),
             rows->results, mesh.getSizes())) {
      volumes.push_back({getReadableName(op), step.kind, step.axes, step.bytes,
                         getRunsPerStep(op)});
    }
    return WalkResult::advance();
  });
  if (walk.wasInterrupted()) {
    return failure();
  }
  return volumes;
}

} // namespace mlir::alpa
