//===- BoundaryRule.h - A function as one operator --------------*- C++ -*-===//
//
// Which dimensions of a function's arguments and results are split together, as
// far as the sharding rules of its operators say: what a partitioner around the
// function needs to carry shardings through it.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_BOUNDARYRULE_H
#define CPP_ANALYSIS_BOUNDARYRULE_H

#include "cpp/analysis/ArgumentUses.h"
#include <cstdint>
#include <vector>

namespace mlir::alpa {

struct BoundaryRule {
  /// Of each argument, and of each result: per dimension its class.
  std::vector<std::vector<int64_t>> arguments, results;
  /// Per class the size that may be split; it divides the dimensions of the
  /// class, whose major part it is.
  std::vector<int64_t> sizes;
  /// Of each argument: per dimension its use.
  std::vector<std::vector<DimensionUse>> uses;
};

/// Classes that only one dimension of the boundary has are left out, and one
/// that would split two dimensions of a tensor leaves that tensor out.
BoundaryRule getBoundaryRule(func::FuncOp function);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_BOUNDARYRULE_H
