//===- Core.h - A sum of costs over nodes and edges -------------*- C++ -*-===//
//
// The intra-operator programme without a memory budget,
//
//   f(x) = constant + sum_v c_v(x_v) + sum_(u,v) R_uv(x_u, x_v),
//
// in the form that the exact reductions work on. Costs are float64 seconds;
// +inf forbids a choice or a pair of choices, NaN and -inf are not allowed.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_SOLVER_CORE_H
#define CPP_SOLVER_CORE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <limits>
#include <vector>

namespace mlir::alpa {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// Costs of the pairs of choices of two nodes, row-major
/// [choices of u][choices of v].
struct CoreEdge {
  unsigned u;
  unsigned v;
  std::vector<double> cost;
  bool alive = true;

  unsigned other(unsigned node) const { return node == u ? v : u; }
};

/// A set of choices per node; true keeps.
using Kept = std::vector<std::vector<char>>;

class Core {
public:
  /// Nodes with the given costs and no edge.
  explicit Core(std::vector<std::vector<double>> costs);

  /// Adds costs between two different nodes; edges of one pair are summed.
  /// `cost` is row-major [choices of u][choices of v].
  void addEdge(unsigned u, unsigned v, llvm::ArrayRef<double> cost);

  unsigned getNumNodes() const { return costs.size(); }
  unsigned getSize(unsigned node) const { return costs[node].size(); }
  llvm::ArrayRef<unsigned> getEdges(unsigned node) const {
    return incident[node];
  }

  /// Drops choices of a node, in its cost and in its edges.
  void restrict(unsigned node, llvm::ArrayRef<char> keep);

  /// Moves the least entries of an edge's rows and columns into its nodes; an
  /// edge that is left without a cost is removed. f stays as it is.
  void normalize(unsigned edge);

  /// Takes an edge out, its costs left to the caller.
  void removeEdge(unsigned edge);

  /// Moves the least cost of a node into the constant. False: all are +inf.
  bool center(unsigned node);

  /// The cost of a plan: one index into `domains` per node.
  double getValue(llvm::ArrayRef<unsigned> labels) const;

  /// Entries of all edges.
  int64_t getNumEntries() const;

  /// Entries of an edge below this are rounding.
  double getTolerance() const { return tolerance; }

  /// Per node: the choices left, by their first numbers, ascending.
  std::vector<std::vector<int32_t>> domains;
  std::vector<std::vector<double>> costs;
  std::vector<CoreEdge> edges;
  double constant = 0.0;

private:
  std::vector<llvm::SmallVector<unsigned, 6>> incident;
  double tolerance = 0.0;
};

} // namespace mlir::alpa

#endif // CPP_SOLVER_CORE_H
