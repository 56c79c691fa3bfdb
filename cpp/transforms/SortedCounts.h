//===- SortedCounts.h - How many rows groups have ---------------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_SORTEDCOUNTS_H
#define CPP_TRANSFORMS_SORTEDCOUNTS_H

#include "mlir/IR/Value.h"
#include <optional>
#include <vector>

namespace mlir::alpa {

/// Of how many rows each number is, for the numbers from 0 on: what
/// `jnp.bincount` makes, or a sum of `jax.nn.one_hot`.
///
/// Returns the numbers of the rows, of which those below 0 are counted as 0 or
/// do not occur; null for anything else.
Value getCounted(Value counts);

/// Sums of counts from the first on: `value[i]` is how many rows have a number
/// below `bounds[i]`.
struct PrefixCounts {
  Value counts;
  std::vector<int64_t> bounds;
};

/// What a value has of running totals of counts; none if it has anything else.
std::optional<PrefixCounts> getPrefixCounts(Value value);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_SORTEDCOUNTS_H
