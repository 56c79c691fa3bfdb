//===- ManualVolumes.cpp - What computations by hand move -----------------===//

#include "cpp/analysis/ManualVolumes.h"

#include "cpp/analysis/FactorMapping.h"
#include "dialects/alpa/DataFlow.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::alpa {

DenseIntElementsAttr getRaggedGroups(Operation *op) {
  auto config = op->getAttrOfType<DictionaryAttr>("backend_config");
  return config ? config.getAs<DenseIntElementsAttr>("replica_groups")
                : nullptr;
}

double getRunsInBody(Operation *inner, ManualOp op) {
  double runs = 1;
  for (Operation *around = inner->getParentOp(); around && around != op;
       around = around->getParentOp()) {
    if (auto dataFlow = dyn_cast<DataFlowOpInterface>(around)) {
      runs *= getRegionRuns(dataFlow);
    }
  }
  return runs;
}

/// The axes along which the devices of a row differ; all of them if there are
/// no rows. Devices have the numbers of the flattened mesh.
static uint32_t getAxes(DenseIntElementsAttr rows,
                        ArrayRef<int64_t> meshShape) {
  if (!rows || rows.empty()) {
    return (1u << meshShape.size()) - 1;
  }
  int64_t size = rows.getType().getShape().back();
  SmallVector<int64_t> devices(rows.getValues<int64_t>());
  uint32_t axes = 0;
  for (size_t index = 0; index < devices.size(); ++index) {
    int64_t first = devices[index - index % size], device = devices[index];
    // A group that is shorter than others is filled up with -1.
    for (size_t axis = meshShape.size(); device >= 0 && axis-- > 0;) {
      axes |= uint32_t(first % meshShape[axis] != device % meshShape[axis])
              << axis;
      first /= meshShape[axis];
      device /= meshShape[axis];
    }
  }
  return axes;
}

static double getBytes(ValueRange values) {
  double bytes = 0;
  for (Value value : values) {
    bytes += getTensorBytes(value.getType());
  }
  return bytes;
}

static std::optional<VolumeStep> getVolume(Operation *op,
                                           ArrayRef<int64_t> meshShape) {
  using Found = std::optional<VolumeStep>;
  auto make = [&](CollectiveKind kind, DenseIntElementsAttr rows,
                  ValueRange payload) -> Found {
    return VolumeStep{kind, getAxes(rows, meshShape), getBytes(payload)};
  };
  return TypeSwitch<Operation *, Found>(op)
      .Case([&](stablehlo::AllReduceOp reduce) {
        return make(CollectiveKind::AllReduce, reduce.getReplicaGroups(),
                    op->getOperands());
      })
      .Case([&](stablehlo::AllGatherOp gather) {
        return make(CollectiveKind::AllGather, gather.getReplicaGroups(),
                    op->getResults());
      })
      .Case([&](stablehlo::ReduceScatterOp scatter) {
        return make(CollectiveKind::ReduceScatter, scatter.getReplicaGroups(),
                    op->getOperands());
      })
      .Case([&](stablehlo::AllToAllOp exchange) {
        return make(CollectiveKind::AllToAll, exchange.getReplicaGroups(),
                    op->getOperands());
      })
      .Case([&](stablehlo::CollectivePermuteOp permute) {
        return make(CollectiveKind::CollectivePermute,
                    permute.getSourceTargetPairs(), op->getOperands());
      })
      // Goes through every device once, as a permute does.
      .Case([&](stablehlo::CollectiveBroadcastOp broadcast) {
        return make(CollectiveKind::CollectivePermute,
                    broadcast.getReplicaGroups(), op->getOperands());
      })
      .Case([&](stablehlo::CustomCallOp call) -> Found {
        if (call.getCallTargetName() != kRaggedAllToAllTarget ||
            op->getNumOperands() < 2) {
          return std::nullopt;
        }
        // Neither more than there is is sent, nor more than there is room for.
        Value rows = op->getOperand(0), place = op->getOperand(1);
        return make(CollectiveKind::AllToAll, getRaggedGroups(op),
                    getBytes(rows) < getBytes(place) ? rows : place);
      })
      .Default([](Operation *) { return std::nullopt; });
}

std::vector<ManualVolume> getManualVolumes(ManualOp op) {
  std::vector<ManualVolume> volumes;
  op.getBody().walk<WalkOrder::PreOrder>([&](Operation *inner) {
    std::optional<VolumeStep> step = getVolume(inner, op.getMesh().getSizes());
    if (step && step->axes != 0) {
      volumes.push_back({inner, *step, getRunsInBody(inner, op)});
    }
  });
  return volumes;
}

} // namespace mlir::alpa
