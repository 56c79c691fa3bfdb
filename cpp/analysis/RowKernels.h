//===- RowKernels.h - Rows that are reduced where they are read -*- C++ -*-===//
//
// XLA for GPU computes a softmax, and a norm, in one kernel: a row is read
// once, and what it is reduced to is used where the row still is.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_ROWKERNELS_H
#define CPP_ANALYSIS_ROWKERNELS_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::alpa {

/// Elements of a row. XLA for GPU reduces a longer one in two kernels: its
/// compiler of jax 0.10.2 takes 16,384 numbers of two and of four bytes in one,
/// and 16,385 in two.
inline constexpr int64_t kLongestRow = 16384;

/// What stores a result, with what it reads from memory.
struct StoringOperator {
  Operation *op;
  ArrayRef<Value> sources;
  /// Whether each element of the result is computed from elements of one place.
  bool isElementwise;
};

/// True for a reduction of the last dimensions of one tensor, of few enough
/// elements that a kernel has them all at hand, between whose result and what
/// is computed with it nothing is chosen: the maximum of `logsumexp`, which
/// must be finite, ends its kernel.
bool reducesRows(Operation *op);

/// Operators that are computed in one kernel with others, each with the first
/// of its kernel. A reduction of rows joins
///
///   - one that it takes the result of, where both read the same: the sum of a
///     softmax its maximum; so does what is computed of their results alone;
///   - what else reads its result, where that is one kernel, which computes
///     elements of the same rows; and reductions that join the same kernel do
///     so one after another, each taking what the one before it makes.
///
/// Takes time linear in the operators and what they read.
///
/// \param storing in program order.
/// \param isRowReduction says which of them reduce rows that lie in memory one
///        after another.
DenseMap<Operation *, Operation *>
findRowKernels(ArrayRef<StoringOperator> storing,
               function_ref<bool(Operation *)> isRowReduction);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_ROWKERNELS_H
