//===- Elimination.h - Exact min-plus elimination ---------------*- C++ -*-===//
//
// Bucket elimination of a core. Nodes are taken out one by one. With B(v) the
// tables that mention v when its turn comes and N(v) their other nodes, they
// are replaced by one table over N(v) alone:
//
//   m_v(x_N) = min_a sum_(t in B(v)) t(a, x_N).
//
// When none is left the constant is the optimum; going back in reverse order,
// every node takes argmin_a sum_(t in B(v)) t(a, x_N), its neighbours being
// decided already.
//
// Exactness: no table outside B(v) mentions v, and + distributes over min, so
// min_x f is the same before and after every step; by induction the constant
// left at the end is min_x f. For the way back: if the nodes taken out after v
// are at an optimum of the function that the step left, adding the argmin of v
// gives an optimum of the function before it, because both values are equal.
// Both hold for +inf entries too, and up to the rounding of float64 sums.
//
// The work is the sum over v of |D_v| prod_(u in N(v)) |D_u|. Nodes go in
// greedy order of that weight, ties to the smaller number. The order is found
// before any table is computed: a graph that is too dense is given up at once.
//
// Repeated layers: the least entry of every table moves to the constant, so
// layers that do the same have the same tables to the last bit. Tables are
// interned by content, and a step whose tables and axes were met before takes
// the earlier answer (TableCache).
//
// Bertele and Brioschi, "Nonserial Dynamic Programming", 1972; Dechter,
// "Bucket elimination: A unifying framework for reasoning", 1999.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_SOLVER_ELIMINATION_H
#define CPP_SOLVER_ELIMINATION_H

#include "cpp/solver/Core.h"
#include "cpp/solver/Effort.h"
#include "cpp/solver/TableCache.h"
#include <optional>

namespace mlir::alpa {

/// Entries of tables, the node that is taken out included.
struct EliminationLimits {
  int64_t largest;
  int64_t total;
};

struct EliminationOrder {
  /// Nodes of more than one choice.
  std::vector<unsigned> nodes;
  /// Entries of the largest table, and of all of them.
  int64_t largest = 0;
  int64_t total = 0;
  /// Most neighbours of a node when its turn comes.
  unsigned width = 0;
};

/// The greedy order; none when it exceeds a limit.
std::optional<EliminationOrder> getEliminationOrder(const Core &core,
                                                    EliminationLimits limits);

struct Elimination {
  /// Index into the domain of each node.
  std::vector<unsigned> labels;
  double value = 0.0;
  /// Steps that were computed, the others being repetitions.
  unsigned computed = 0;
};

/// Minimises a core along an order; none once the effort is over or the cache
/// is full. What is counted does not depend on what the cache held before.
std::optional<Elimination> eliminate(const Core &core,
                                     const EliminationOrder &order,
                                     TableCache &cache, Effort &effort);

} // namespace mlir::alpa

#endif // CPP_SOLVER_ELIMINATION_H
