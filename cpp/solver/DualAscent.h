//===- DualAscent.h - A lower bound that drops strategies -------*- C++ -*-===//
//
// The linear relaxation of the programme without a memory budget is tight on
// strategy graphs, and its dual can be climbed without a solver. Costs are
// moved between nodes and edges, which leaves every plan's cost as it is (a
// reparametrisation):
//
//   f(x) >= constant + sum_v min c_v + sum_(u,v) min R_uv = L.
//
// Sweeping over the nodes forth and back, each node takes min_b R_vu(., b)
// from all its edges and shares what it has among the edges that lead onwards.
// No step lowers L. A plan F is read off on the way: each node takes its
// cheapest choice given those decided before it, and changes of single nodes
// improve it; the better F is, the more is dropped.
//
// Exactness of dropping: a plan with choice a at node v costs at least
//
//   L + c_v(a) - min c_v + sum_u (min_b R_vu(a, b) - min R_vu).
//
// Where this exceeds f(F) no plan with (v, a) is better than F, and a is
// dropped; the choices of F stay. So the least cost over what is left is the
// least cost over everything. The excess over L is taken when v has collected
// from its edges, where it is largest; L at the start of the sweep is at most
// that of this moment.
//
// Kolmogorov, "Convergent tree-reweighted message passing for energy
// minimization", PAMI 2006; "A new look at reweighted message passing", PAMI
// 2015.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_SOLVER_DUALASCENT_H
#define CPP_SOLVER_DUALASCENT_H

#include "cpp/solver/Core.h"

namespace mlir::alpa {

class DualAscent {
public:
  /// Every choice of a node must have a finite cost and, in each of its edges,
  /// a finite entry.
  explicit DualAscent(const Core &core);

  /// Visits every node once, in rising or falling order.
  void sweep(bool forward);

  /// Improves the last sweep's plan node by node until no change of one node
  /// helps.
  void descend();

  /// L: no plan costs less.
  double getBound() const;

  /// The least cost of a plan met, and its choices as indices into the domains
  /// that are left.
  double getBest() const { return best; }
  llvm::ArrayRef<unsigned> getBestLabels() const { return bestLabels; }

  /// The choices that a plan of at most `cutoff` may use. `bound` is L before
  /// the last sweep.
  Kept getKept(double bound, double cutoff) const;

  void restrict(const Kept &kept);

private:
  /// Of a table of costs, per choice of one end the least over the other's.
  /// They change with the costs, so that a visit looks at a table once.
  struct LeastCosts {
    std::vector<double> ofU;
    std::vector<double> ofV;

    std::vector<double> &of(bool isU) { return isU ? ofU : ofV; }
  };

  void findLeast();
  void visit(unsigned node, bool forward);
  /// The cost of each choice of a node, its neighbours' labels given.
  std::vector<double> getCosts(unsigned node) const;
  void keepIfBest();
  bool isDecided(unsigned node, unsigned other, bool forward) const {
    return forward ? other < node : other > node;
  }

  Core core;
  std::vector<std::vector<double>> excess;
  std::vector<unsigned> labels;
  std::vector<unsigned> bestLabels;
  double best;
  /// Per edge.
  std::vector<LeastCosts> least;
  /// Of the node at hand: what its choices cost with what is decided, and what
  /// moves into an edge.
  std::vector<double> total;
  std::vector<double> added;
};

} // namespace mlir::alpa

#endif // CPP_SOLVER_DUALASCENT_H
