//===- RowComparison.h - Whether values are equal in each row ---*- C++ -*-===//

#ifndef CPP_TRANSFORMS_ROWCOMPARISON_H
#define CPP_TRANSFORMS_ROWCOMPARISON_H

#include "mlir/IR/Operation.h"

namespace mlir::alpa {

/// Compares what a block makes of its arguments with other values. One number
/// for all rows is equal to as many equal numbers: `jax.vmap` makes of some
/// what it leaves alone elsewhere.
class RowComparison {
public:
  /// \param given for each argument of `block` the value that it is taken for;
  /// null for one that is equal to nothing else.
  RowComparison(Block &block, ValueRange given)
      : block(block), given(given.begin(), given.end()) {}

  /// \param one is made in the block, or from outside of it.
  bool isSame(Value one, Value other);

private:
  bool areSame(Operation &one, Operation &other);

  Block &block;
  SmallVector<Value> given;
  DenseMap<std::pair<Operation *, Operation *>, bool> compared;
};

/// A value without what changes no row: numbers that are repeated, booleans
/// that are compared with false, or taken together with true, what all turns of
/// a loop have as it was before the first.
Value stripRows(Value value);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_ROWCOMPARISON_H
