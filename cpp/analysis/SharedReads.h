//===- SharedReads.h - Products that read one value -------------*- C++ -*-===//

#ifndef CPP_ANALYSIS_SHAREDREADS_H
#define CPP_ANALYSIS_SHAREDREADS_H

#include "mlir/IR/Operation.h"

namespace mlir::alpa {

/// The uses of an operand's value by products of its block, layer and phase:
/// what the value is resharded to for one of them is there for the others. Of
/// the query, the key and the value of an attention that is one all-gather.
///
/// None if there is one such product alone.
SmallVector<OpOperand *> findUsesByProducts(OpOperand &operand);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_SHAREDREADS_H
