//===- Erasure.h - Operators that nothing uses ------------------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_ERASURE_H
#define CPP_TRANSFORMS_ERASURE_H

#include "mlir/IR/Operation.h"

namespace mlir::alpa {

/// Erases what nothing uses: the value of a loss that only gradients are taken
/// of would run once per step, on one micro-batch.
void eraseUnused(Block &block);

/// Erases those of some operators that nothing uses, and what only these have
/// used.
void eraseUnused(ArrayRef<Operation *> candidates);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_ERASURE_H
