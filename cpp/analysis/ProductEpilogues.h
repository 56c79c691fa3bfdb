//===- ProductEpilogues.h - What is computed where products are -*- C++ -*-===//
//
// XLA for TPU computes what follows a product where its tiles are made: biases,
// activations, residuals and sums of rows or columns. The product itself lies
// in memory only where something else reads it.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_PRODUCTEPILOGUES_H
#define CPP_ANALYSIS_PRODUCTEPILOGUES_H

#include "cpp/analysis/RowKernels.h"

namespace mlir::alpa {

/// What a product is, and how far behind the arguments values are.
struct EpilogueRules {
  function_ref<bool(Operation *)> isProduct;
  /// Kernels on the longest way to a stored value: equal for a product and what
  /// is computed elementwise from it.
  function_ref<int(Value)> getDepth;
  /// Whether an operator's fusion alone reads a value.
  function_ref<bool(Value, Operation *)> isReadBy;
};

struct ProductEpilogues {
  /// Operators that are computed in the kernel of a product, each with that
  /// product.
  DenseMap<Operation *, Operation *> products;
  /// Of products that wait for what else the first such operator reads, the
  /// operator.
  DenseMap<Operation *, Operation *> awaited;
};

/// True if none of the values but its own depends on a product, which may wait
/// for them.
bool mayWaitFor(Operation *product, ArrayRef<Value> values);

/// Operators that compute elements of a product's place, or reduce such, from
/// it, from what joined it elementwise, and from what is there before it. Where
/// an operator alone reads a product, the product waits for all else that it
/// reads.
///
/// Takes time linear in the operators and what they read.
///
/// \param storing in program order.
ProductEpilogues findProductEpilogues(ArrayRef<StoringOperator> storing,
                                      EpilogueRules rules);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_PRODUCTEPILOGUES_H
