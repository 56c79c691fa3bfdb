//===- Combination.cpp - How devices combine what they have ---------------===//

#include "cpp/analysis/Combination.h"

#include "mlir/IR/TypeUtilities.h"
#include <cstdlib>

namespace mlir::alpa {

/// The type in which numbers are moved that not every collective takes:
/// integers of less than 8 bits, floats of other sizes than those of machines.
static Type getWidened(Type type) {
  MLIRContext *context = type.getContext();
  if (auto integer = dyn_cast<IntegerType>(type)) {
    unsigned width = integer.getWidth();
    return width == 1 || width >= 8
               ? type
               : IntegerType::get(context, 8, integer.getSignedness());
  }
  auto number = dyn_cast<FloatType>(type);
  return number && number.getWidth() < 32 && number.getWidth() != 16
             ? Float32Type::get(context)
             : type;
}

Combination getCombination(ReductionKind kind, Type elementType) {
  Type type = getWidened(elementType);
  if (auto number = dyn_cast<FloatType>(type);
      number && (kind == ReductionKind::Max || kind == ReductionKind::Min)) {
    return {CollectiveKind::AllReduce, type,
            IntegerType::get(type.getContext(), number.getWidth())};
  }
  bool isBitwise = kind == ReductionKind::And || kind == ReductionKind::Or;
  return {isBitwise && !type.isInteger(1) ? CollectiveKind::AllGather
                                          : CollectiveKind::AllReduce,
          type, type};
}

static double getWireBytes(Type type, Type wireType, ShardingRowRef row,
                           ArrayRef<int64_t> meshShape) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? getTensorBytes(tensor.clone(wireType)) /
                      static_cast<double>(getNumShards(row, meshShape))
                : 0;
}

/// Axes that split a factor whose results have to be combined at once.
static uint32_t getCombinedAxes(const ShardingRule &rule,
                                ArrayRef<int> factorRow, ReductionKind kind) {
  uint32_t axes = 0;
  for (auto [axis, entry] : llvm::enumerate(factorRow)) {
    if (entry >= 0 && rule.factors[entry].kind == FactorKind::Reduction &&
        rule.factors[entry].reduction == kind) {
      axes |= 1u << axis;
    }
  }
  return axes;
}

static double getGroupSize(uint32_t axes, ArrayRef<int64_t> meshShape) {
  double size = 1;
  for (auto [axis, axisSize] : llvm::enumerate(meshShape)) {
    size *= axes >> axis & 1 ? static_cast<double>(axisSize) : 1;
  }
  return size;
}

/// The axes along which devices differ that have the one block and the other.
static uint32_t getDifferingAxes(uint32_t axes, int64_t from, int64_t to,
                                 ArrayRef<int64_t> meshShape) {
  uint32_t differing = 0;
  for (size_t axis = meshShape.size(); axis-- > 0;) {
    if (axes >> axis & 1) {
      differing |= uint32_t(from % meshShape[axis] != to % meshShape[axis])
                   << axis;
      from /= meshShape[axis];
      to /= meshShape[axis];
    }
  }
  return differing;
}

/// The axes along which something is sent from block to block.
static uint32_t getRoutedAxes(uint32_t axes, const Exchange &exchange,
                              ArrayRef<int64_t> meshShape) {
  uint32_t routed = 0;
  for (auto [from, to] : exchange.routes) {
    routed |= getDifferingAxes(axes, from, to, meshShape);
  }
  if (!exchange.distance) {
    return routed;
  }
  auto numBlocks = static_cast<int64_t>(getGroupSize(axes, meshShape));
  int64_t distance = std::abs(*exchange.distance);
  for (int64_t block = 0; block + distance < numBlocks; ++block) {
    routed |= getDifferingAxes(axes, block, block + distance, meshShape);
  }
  return routed;
}

/// What local forms send along ordered and windowed factors.
static void addExchangedVolumes(Operation *op, const ShardingRule &rule,
                                ArrayRef<int> factorRow,
                                ArrayRef<int64_t> meshShape,
                                std::vector<VolumeStep> &volumes) {
  SmallVector<uint32_t> axes(rule.factors.size(), 0);
  SmallVector<int64_t> shards = getFactorShards(rule, factorRow, meshShape);
  for (auto [axis, entry] : llvm::enumerate(factorRow)) {
    if (entry >= 0) {
      axes[entry] |= 1u << axis;
    }
  }
  for (auto [index, factor] : llvm::enumerate(rule.factors)) {
    if (!factor.hasExchange() || shards[index] == 1) {
      continue;
    }
    // XLA for GPU joins all-gathers over the same devices that wait for nothing
    // between them (`AllGatherCombiner`): one for the results of an operator.
    double gathered = 0;
    for (const Exchange &exchange : getExchanges(op, rule, index, shards)) {
      if (exchange.isDealt) {
        volumes.push_back(
            {CollectiveKind::AllToAll, axes[index], exchange.bytes});
      } else if (exchange.distance || !exchange.routes.empty()) {
        volumes.push_back({CollectiveKind::CollectivePermute,
                           getRoutedAxes(axes[index], exchange, meshShape),
                           exchange.bytes});
      } else {
        gathered += exchange.bytes * static_cast<double>(shards[index]);
      }
    }
    if (gathered > 0) {
      volumes.push_back({CollectiveKind::AllGather, axes[index], gathered});
    }
  }
}

bool combinesAtOnce(Operation *op, const ShardingRule &rule) {
  return isDeviceDependent(op) ||
         llvm::any_of(rule.factors, [](const Factor &factor) {
           return factor.hasExchange() ||
                  (factor.kind == FactorKind::Reduction && !factor.isSum());
         });
}

std::vector<VolumeStep> getCombinedVolumes(Operation *op,
                                           const ShardingRule &rule,
                                           ArrayRef<int> factorRow,
                                           ArrayRef<ShardingRow> resultRows,
                                           ArrayRef<int64_t> meshShape) {
  std::vector<VolumeStep> volumes;
  auto add = [&](ReductionKind kind, uint32_t axes) {
    for (auto [result, row] : llvm::zip(op->getResults(), resultRows)) {
      Type element = getElementTypeOrSelf(result.getType());
      Combination form = getCombination(kind, element);
      double bytes =
          getWireBytes(result.getType(), form.wireType, row, meshShape);
      if (form.collective == CollectiveKind::AllGather) {
        bytes *= getGroupSize(axes, meshShape);
      }
      volumes.push_back({form.collective, axes, bytes});
    }
  };
  for (ReductionKind kind :
       {ReductionKind::Product, ReductionKind::Max, ReductionKind::Min,
        ReductionKind::And, ReductionKind::Or}) {
    if (uint32_t axes = getCombinedAxes(rule, factorRow, kind)) {
      add(kind, axes);
    }
  }
  addExchangedVolumes(op, rule, factorRow, meshShape, volumes);
  uint32_t all = (1u << meshShape.size()) - 1;
  if (isDeviceDependent(op) && getGroupSize(all, meshShape) > 1) {
    add(ReductionKind::Sum, all);
  }
  return volumes;
}

} // namespace mlir::alpa
