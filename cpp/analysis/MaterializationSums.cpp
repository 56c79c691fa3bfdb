//===- MaterializationSums.cpp - Where sums over devices lie --------------===//

#include "cpp/analysis/Materialization.h"
#include "dialects/alpa/Sharding.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// What each device sends where XLA for TPU scatters a sum in a kernel of its
/// own, at least, and over how many devices, at most. Heuristic: in its
/// programs it does so from 12 MiB on, not with 8 MiB in 32 bits, nor over 8
/// devices.
static constexpr double kScatteredBytes = 10 * 1024 * 1024;
static constexpr int64_t kScattering = 4;

/// True for a sum of which all devices of the program take parts.
static bool isOfAllDevices(stablehlo::ReduceScatterOp op) {
  return op.getReplicaGroups().getShapedType().getDimSize(0) == 1;
}

bool Materialization::isSummedWhole(Operation *op) const {
  auto scatter = dyn_cast_or_null<stablehlo::ReduceScatterOp>(op);
  return scatter && options.isLocal && options.backend == Backend::Tpu &&
         isOfAllDevices(scatter);
}

bool Materialization::isSummedInPlace(Operation *op) {
  return options.isLocal && options.backend == Backend::Tpu &&
         (isa<stablehlo::AllReduceOp>(op) || isHeldWhole(op));
}

bool Materialization::isHeldWhole(Operation *op) {
  return isSummedWhole(op) &&
         !isReadByKernel(op->getResult(0), /*isPrologue=*/true);
}

double Materialization::getHeldRatio(Value value) {
  Operation *maker = value.getDefiningOp();
  double whole = maker && isHeldWhole(maker)
                     ? getTensorBytes(maker->getOperand(0).getType()) /
                           getTensorBytes(value.getType())
                     : 1;
  return whole * getStoredRatio(value);
}

/// True for large sums of matrices that XLA for TPU scatters along rows in a
/// kernel of its own.
static bool isScatteredByKernel(Operation *op) {
  auto scatter = dyn_cast<stablehlo::ReduceScatterOp>(op);
  if (!scatter || scatter.getScatterDimension() != 0) {
    return false;
  }
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  int64_t devices = scatter.getReplicaGroups().getShapedType().getDimSize(1);
  return result.getRank() == 2 && !isOfAllDevices(scatter) &&
         devices <= kScattering &&
         static_cast<double>(devices - 1) * getTensorBytes(result) >=
             kScatteredBytes;
}

/// That kernel leaves some rows with a neighbour, which sends them beside the
/// kernels behind it: what it wrote lies there until the next has written.
void Materialization::holdScattered() {
  if (!options.isLocal || options.backend != Backend::Tpu) {
    return;
  }
  DenseMap<Block *, Operation *> last;
  for (const Root &root : roots) {
    if (!isScatteredByKernel(root.op)) {
      continue;
    }
    Operation *&before = last[root.op->getBlock()];
    if (before) {
      int &end = lastRead[before->getResult(0)];
      end = std::max(end, points.lookup(root.op));
    }
    before = root.op;
  }
}

} // namespace mlir::alpa
