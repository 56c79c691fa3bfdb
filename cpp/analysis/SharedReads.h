//===- SharedReads.h - Products that read one value -------------*- C++ -*-===//

#ifndef CPP_ANALYSIS_SHAREDREADS_H
#define CPP_ANALYSIS_SHAREDREADS_H

#include "mlir/IR/Operation.h"

namespace mlir::alpa {

/// The uses of an operand's value by its owner and by products near behind it,
/// of its layer and phase, none of which waits for another: what the value is
/// resharded to for one of them is there for the others. Of the query, the key
/// and the value of an attention that is one all-gather. A product of the
/// backward phase waits for those of the forward phase; for it to share with
/// them, what they gathered would have to be kept.
///
/// None if there is one such product alone.
SmallVector<OpOperand *> findUsesByProducts(OpOperand &operand);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_SHAREDREADS_H
