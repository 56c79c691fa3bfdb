//===- SortedNumbers.h - Indices and counts of sorted rows ------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_SORTEDNUMBERS_H
#define CPP_TRANSFORMS_SORTEDNUMBERS_H

#include "mlir/IR/Value.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>
#include <vector>

namespace mlir::alpa {

/// Integers that are computed element by element of one tensor and constants:
/// what they are where that tensor is 0, 1, 2, ...
class NumbersOf {
public:
  explicit NumbersOf(Value base);

  /// One per element of the base, or one for all; null if a value is made of
  /// anything else.
  const std::vector<int64_t> *get(Value value);

private:
  std::optional<std::vector<int64_t>> make(Value value);
  std::optional<std::vector<int64_t>> makeElementwise(Operation *op);

  Value base;
  size_t size;
  llvm::DenseMap<Value, std::optional<std::vector<int64_t>>> known;
};

/// What a loop hands on as it is: the value in front of it.
Value getOutside(Value value);

/// The positions along a dimension that a value is, if it is; else null.
stablehlo::IotaOp getIota(Value value);

/// Without changes of shape that leave elements in their order, conversions of
/// integers that keep their values, and barriers.
Value stripShape(Value value);

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

#endif // CPP_TRANSFORMS_SORTEDNUMBERS_H
