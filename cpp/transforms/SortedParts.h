//===- SortedParts.h - Rows that are sorted in parts ------------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_SORTEDPARTS_H
#define CPP_TRANSFORMS_SORTEDPARTS_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::alpa {

/// Sorts rows within each of some equal parts, where nothing that is computed
/// shows in which order they are: tokens of a mixture without capacities, which
/// are sorted by expert, multiplied in groups, and brought back.
///
///     o = argsort(e); y = ragged_dot(x[o], w, bincount(e))[argsort(o)]
///
/// Each row goes the same way as before, beside others of its part. What stands
/// in another order (`x[o]`), how many rows a group has, and where it begins is
/// then that of every part; all other values are as they were, but for the
/// order of sums. Sorts, gathers, scatters and products in groups have the
/// parts for a batch, so that devices, or micro-batches, each take some.
void sortInParts(func::FuncOp function, int64_t numParts);

/// Whether a step has such rows.
bool hasSortedRows(func::FuncOp function, int64_t numParts);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_SORTEDPARTS_H
