//===- ReshardPlanner.h - From one sharding to another ----------*- C++ -*-===//
//
// Finds the cheapest sequence of collectives between two shardings.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_RESHARDPLANNER_H
#define CPP_ANALYSIS_RESHARDPLANNER_H

#include "dialects/alpa/Sharding.h"
#include "llvm/ADT/StringMap.h"
#include <memory>
#include <vector>

namespace mlir::alpa {

/// Numbered as in the arrays that leave the compiler.
enum class CollectiveKind : int8_t {
  AllReduce = 0,
  AllGather = 1,
  ReduceScatter = 2,
  AllToAll = 3,
  CollectivePermute = 4,
  /// Slicing or masking on the device itself.
  Local = 5,
};

/// Where the blocks of a tensor lie, with the order of the axes on a dimension.
struct Placement {
  /// Per dimension the axes that split it, major to minor.
  SmallVector<SmallVector<uint8_t, 2>, 4> dims;
  /// Bit mask of the axes over which the value is a partial sum.
  uint32_t partial = 0;

  bool operator==(const Placement &other) const {
    return dims == other.dims && partial == other.partial;
  }
};

Placement getPlacement(ShardingRowRef row, unsigned rank);

/// Per device the device that holds its block of `after` under `before`; the
/// two differ in where the blocks lie, not in how large they are.
SmallVector<int64_t> getPermuteSources(const Placement &before,
                                       const Placement &after,
                                       ArrayRef<int64_t> meshShape);

/// One collective (or local step) of a plan.
///
/// | kind              | fromDim     | toDim                                |
/// | all-gather        | gathered    |                                      |
/// | reduce-scatter    |             | scattered                            |
/// | all-to-all        | concatenated| split                                |
/// | local: slice      |             | split                                |
/// | local: place      | turned into a partial sum of zero-padded blocks   |
/// | local: mask       | neither: kept on position 0 of the axes, else zero|
struct ReshardStep {
  CollectiveKind kind;
  /// Mesh axes of the group, major to minor.
  SmallVector<unsigned, 2> axes;
  int fromDim = -1;
  int toDim = -1;
  /// Payload in elements per device: the local operand, of an all-gather the
  /// local result.
  double elements = 0;
  Placement before, after;

  uint32_t getAxesMask() const {
    uint32_t mask = 0;
    for (unsigned axis : axes) {
      mask |= 1u << axis;
    }
    return mask;
  }
};

using ReshardPlan = std::vector<ReshardStep>;

/// Dijkstra's algorithm over placements; the length of a step is the number of
/// elements that it moves through a device's link under a ring algorithm:
/// all-reduce 2(n-1)/n x, all-gather, reduce-scatter and all-to-all (n-1)/n x,
/// collective-permute x, for payload x and n devices (Thakur et al., 2005).
///
/// Plans depend on sizes alone, and the modules of a search repeat them: all
/// planners of a process share what they have found.
class ReshardPlanner {
public:
  explicit ReshardPlanner(ArrayRef<int64_t> meshShape) : meshShape(meshShape) {}

  /// `from` and `to` must divide `shape`. The reference stays valid.
  const ReshardPlan &getPlan(ArrayRef<int64_t> shape, ShardingRowRef from,
                             ShardingRowRef to);

  /// The length of a step, as above.
  double getMovedElements(const ReshardStep &step) const;

  ArrayRef<int64_t> getMeshShape() const { return meshShape; }

private:
  ReshardPlan search(ArrayRef<int64_t> shape, const Placement &from,
                     const Placement &to) const;

  SmallVector<int64_t, 4> meshShape;
  llvm::StringMap<std::shared_ptr<const ReshardPlan>> cache;
};

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_RESHARDPLANNER_H
