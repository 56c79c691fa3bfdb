//===- Minimize.h - Least plan of a core ------------------------*- C++ -*-===//
//
// The exact solver: reductions, then elimination; where that needs large
// tables, the lower bound drops strategies until it does not; where it stays
// so, branching.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_SOLVER_MINIMIZE_H
#define CPP_SOLVER_MINIMIZE_H

#include "cpp/solver/Core.h"
#include "cpp/solver/Effort.h"
#include "cpp/solver/Elimination.h"
#include "cpp/solver/TableCache.h"

namespace mlir::alpa {

/// A gap below this part of the best plan is rounding.
inline constexpr double kRounding = 1e-10;

struct MinimizeOptions {
  /// Above this many entries nothing is computed.
  EliminationLimits limits = {50'000'000, 5'000'000'000};
  /// Entries that elimination takes at once; above, strategies are dropped
  /// first.
  EliminationLimits small = {500'000, 20'000'000};
  /// Problems with a choice fixed that are looked at where all that does not
  /// suffice.
  unsigned maxBranches = 64;
  /// Passes over the nodes by which the lower bound is raised at most.
  unsigned maxSweeps = 5000;
  /// Plans that cost as much are of no interest.
  double cutoff = kInfinity;
};

enum class MinimizeStatus { Optimal, GivenUp, Infeasible };

struct MinimizeResult {
  MinimizeStatus status = MinimizeStatus::Infeasible;
  /// Per node the number of its choice: an optimum, or the best plan met.
  std::vector<int32_t> choices;
  /// No plan costs less.
  double bound = -kInfinity;
  /// The choices that were not dropped; an optimum is among them.
  Kept kept;
  /// Nodes and choices left by the first reductions.
  unsigned numNodes = 0;
  unsigned numChoices = 0;
  /// Sweeps of the dual ascent.
  unsigned numSweeps = 0;
  /// The elimination: its order, and the steps that were no repetitions.
  EliminationOrder order;
  unsigned numComputed = 0;
};

/// `effort` says how much may be done, and is told what was.
MinimizeResult minimize(const Core &core, const MinimizeOptions &options,
                        TableCache &cache, Effort &effort);

/// As much is done as it takes.
inline MinimizeResult minimize(const Core &core, const MinimizeOptions &options,
                               TableCache &cache) {
  Effort effort;
  return minimize(core, options, cache, effort);
}

struct DropResult {
  /// The choices that a plan of at most the cutoff may use.
  Kept kept;
  /// No plan costs less.
  double bound = -kInfinity;
};

/// Drops by the lower bound alone, so that every plan of at most `cutoff`
/// stays, not only an optimum. All costs must be finite.
DropResult drop(Core core, double cutoff, unsigned numSweeps);

} // namespace mlir::alpa

#endif // CPP_SOLVER_MINIMIZE_H
