//===- BoundaryRule.h - A function as one operator --------------*- C++ -*-===//
//
// Which dimensions of a function's arguments and results are split together, as
// far as the sharding rules of its operators say: what a partitioner around the
// function needs to carry shardings through it.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_BOUNDARYRULE_H
#define CPP_ANALYSIS_BOUNDARYRULE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include <cstdint>
#include <vector>

namespace mlir::alpa {

/// A dimension that no other dimension of the boundary goes with.
inline constexpr int64_t kNoClass = -1;

struct BoundaryRule {
  /// Of each argument, and of each result: per dimension its class.
  std::vector<std::vector<int64_t>> arguments, results;
  /// Per class the size that may be split; it divides the dimensions of the
  /// class, whose major part it is.
  std::vector<int64_t> sizes;
};

/// Dimensions are in one class if a chain of operators keeps them together:
/// each has a factor, not replicated, that is the major one of both. A class
/// that would split two dimensions of a tensor leaves that tensor out.
BoundaryRule getBoundaryRule(func::FuncOp function);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_BOUNDARYRULE_H
