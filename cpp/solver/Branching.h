//===- Branching.h - Nodes that many others depend on -----------*- C++ -*-===//
//
// Branch and bound for cores that elimination does not get through. A
// parameter that every step of a recurrent network uses is a neighbour of
// hundreds of nodes: they agree on its choice in every plan, but each may count
// on another one in the lower bound. With its choice fixed the bound is tight
// again, and what is left is as narrow as the steps themselves.
//
// Branched on is the node with the most undecided neighbours. Choices whose
// bound is no better than the best plan met are left out, which keeps an
// optimum.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_SOLVER_BRANCHING_H
#define CPP_SOLVER_BRANCHING_H

#include "cpp/solver/Minimize.h"

namespace mlir::alpa {

/// Minimises further what was given up.
///
/// \param core the problem.
/// \param root what was found of it, given up with a plan.
MinimizeResult branch(const Core &core, MinimizeResult root,
                      const MinimizeOptions &options, TableCache &cache,
                      Effort &effort);

} // namespace mlir::alpa

#endif // CPP_SOLVER_BRANCHING_H
