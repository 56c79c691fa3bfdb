//===- Reduce.h - Exact reductions of a core --------------------*- C++ -*-===//
//
// Dominated strategies (dead ends): choice a of node v is dropped when a
// choice b is as good whatever the neighbours choose (Goldstein),
//
//   c_v(a) - c_v(b) + sum_u min_s (R_vu(a, s) - R_vu(b, s)) >= 0.
//
// Exactness: exchanging a for b in any plan does not raise f. Of two choices
// that dominate each other the one of the smaller number stays.
//
// Nodes of at most two neighbours: v with neighbours u and w is replaced by
// the edge
//
//   R'_uw(s, t) = min_a (c_v(a) + R_vu(a, s) + R_vw(a, t)),
//
// with one neighbour by a cost of u, with none by a constant. Exactness: f is
// minimised over x_v for every choice of the neighbours; the way back takes
// the argmin.
//
// Goldstein, "Efficient rotamer elimination applied to protein side-chains and
// related spin glasses", Biophysical Journal 1994.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_SOLVER_REDUCE_H
#define CPP_SOLVER_REDUCE_H

#include "cpp/solver/Core.h"

namespace mlir::alpa {

/// A node that was taken out, with the costs that it had.
struct ReductionStep {
  struct Neighbour {
    unsigned node;
    std::vector<int32_t> domain;
    /// [choices of the node taken out][choices of the neighbour]
    std::vector<double> cost;
  };
  unsigned node;
  std::vector<int32_t> domain;
  std::vector<double> cost;
  llvm::SmallVector<Neighbour, 2> neighbours;
};

/// Runs both reductions until none applies.
///
/// Nodes taken out are left with one choice and no edge; `steps` grows by one
/// entry for each. False: no plan has a finite cost.
bool reduce(Core &core, std::vector<ReductionStep> &steps);

/// Decides the nodes of the steps, the last first. `choices` holds the first
/// number of the choice of every other node.
void expand(llvm::ArrayRef<ReductionStep> steps,
            llvm::MutableArrayRef<int32_t> choices);

} // namespace mlir::alpa

#endif // CPP_SOLVER_REDUCE_H
