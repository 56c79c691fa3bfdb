//===- SplitSums.cpp - Products in several parts --------------------------===//

#include "cpp/analysis/SplitSums.h"

#include "dialects/alpa/Sharding.h"
#include "mlir/IR/TypeUtilities.h"
#include <algorithm>
#include <cmath>

namespace mlir::alpa {

/// Rows and columns of a tile, and what XLA's estimate charges on a device of
/// Hopper's generation: for an operation, a byte that the product moves, a byte
/// that the sum of the parts moves, and the launch of that sum, in a unit of
/// its own (xla/backends/gpu/transforms/splitk_rewriter.cc, November 2026).
static constexpr double kTile = 128;
static constexpr double kOperationCost = 100, kByteCost = 0.194136,
                        kPartByteCost = 193.1384, kLaunchCost = 4.36e7;

/// Multiprocessors of an H100, the device of Hopper's generation that XLA is
/// asked about.
static constexpr double kProcessors = 132;

static constexpr int kMostParts = 2048;

namespace {

struct Matrices {
  double batch = 1, rows = 1, columns = 1, length = 1;
  /// Bytes of an element of the operands as they lie in memory, of a sum, and
  /// of the result.
  double leftBytes, rightBytes, sumBytes, resultBytes;

  double countOutputs() const { return batch * rows * columns; }
};

} // namespace

static double getValueBytes(Value value) {
  return getElementBytes(getElementTypeOrSelf(value.getType()));
}

/// Bytes of an element of what an operand is computed from one by one.
static double getStoredElementBytes(Value operand) {
  Operation *maker = operand.getDefiningOp();
  while (maker && maker->getNumOperands() == 1 &&
         maker->hasTrait<OpTrait::Elementwise>()) {
    operand = maker->getOperand(0);
    maker = operand.getDefiningOp();
  }
  return getValueBytes(operand);
}

static Matrices getMatrices(stablehlo::DotGeneralOp op) {
  auto left = cast<RankedTensorType>(op.getLhs().getType());
  auto right = cast<RankedTensorType>(op.getRhs().getType());
  auto numbers = op.getDotDimensionNumbers();
  Matrices matrices;
  for (int64_t dim : numbers.getLhsBatchingDimensions()) {
    matrices.batch *= left.getDimSize(dim);
  }
  for (int64_t dim : numbers.getLhsContractingDimensions()) {
    matrices.length *= left.getDimSize(dim);
  }
  double shared = matrices.batch * matrices.length;
  matrices.rows = left.getNumElements() / shared;
  matrices.columns = right.getNumElements() / shared;
  matrices.leftBytes = getStoredElementBytes(op.getLhs());
  matrices.rightBytes = getStoredElementBytes(op.getRhs());
  matrices.resultBytes = getValueBytes(op.getResult());
  matrices.sumBytes = std::max(4.0, matrices.resultBytes);
  return matrices;
}

/// What XLA estimates for a product in some number of parts.
static double estimate(const Matrices &matrices, double parts) {
  double length = std::ceil(matrices.length / parts);
  double rows = std::min(matrices.rows, kTile);
  double columns = std::min(matrices.columns, kTile);
  double numTiles = matrices.batch * parts * std::ceil(matrices.rows / kTile) *
                    std::ceil(matrices.columns / kTile);
  // Small tiles run beside each other.
  double atOnce = kProcessors * kTile * kTile / (rows * columns);
  double computing = 2 * rows * columns * length *
                     std::max(1.0, numTiles / atOnce) * kOperationCost;
  double outputs = matrices.countOutputs();
  double read = matrices.batch * matrices.length *
                (matrices.rows * matrices.leftBytes +
                 matrices.columns * matrices.rightBytes);
  double written =
      outputs * parts * (parts > 1 ? matrices.sumBytes : matrices.resultBytes);
  double product = std::max(computing, (read + written) * kByteCost);
  return parts == 1
             ? product
             : product + kLaunchCost +
                   (written + outputs * matrices.resultBytes) * kPartByteCost;
}

double getPartsRatio(stablehlo::DotGeneralOp op, double widening) {
  auto element = getElementTypeOrSelf(op.getType());
  bool hasLength =
      !op.getDotDimensionNumbers().getLhsContractingDimensions().empty();
  if (!element.isIntOrFloat() || element.isInteger() || !hasLength ||
      getTensorBytes(op.getType()) == 0) {
    return 0;
  }
  Matrices matrices = getMatrices(op);
  matrices.columns *= widening;
  int best = 1;
  double least = estimate(matrices, 1);
  for (int parts = 2; parts <= kMostParts; parts *= 2) {
    if (double cost = estimate(matrices, parts); cost < least) {
      least = cost;
      best = parts;
    }
  }
  return best == 1
             ? 0
             : widening * (best * matrices.sumBytes / matrices.resultBytes - 1);
}

} // namespace mlir::alpa
