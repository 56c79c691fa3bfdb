//===- MinimumCut.h - Cheapest separation of a network ----------*- C++ -*-===//

#ifndef CPP_ANALYSIS_MINIMUMCUT_H
#define CPP_ANALYSIS_MINIMUMCUT_H

#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallVector.h"
#include <limits>
#include <vector>

namespace mlir::alpa {

/// Capacity of an edge that no cut goes through.
inline constexpr double kUncuttable = std::numeric_limits<double>::infinity();

/// A directed network whose nodes fall into two sides, one with the source and
/// one with the sink; an edge from the one to the other costs its capacity.
///
/// Dinitz's algorithm (Soviet Math. Doklady 11, 1970): flow along shortest
/// paths, level by level.
class MinimumCut {
public:
  static constexpr unsigned kSource = 0, kSink = 1;

  MinimumCut() : edgesOf(2) {}

  unsigned addNode();
  void addEdge(unsigned from, unsigned to, double capacity);

  /// The nodes on the side of the source in a cheapest cut, as few as there can
  /// be. An edge of `kUncuttable` from source to sink must not be implied.
  llvm::BitVector findSourceSide();

private:
  struct Edge {
    unsigned to;
    double rest;
  };

  bool findLevels();
  /// Sends up to `limit` along levels; what was sent.
  double augment(double limit);

  /// Edge `2 i + 1` is the reverse of edge `2 i`.
  std::vector<Edge> edges;
  std::vector<llvm::SmallVector<unsigned, 4>> edgesOf;
  std::vector<int> levels;
  std::vector<unsigned> next;
};

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_MINIMUMCUT_H
