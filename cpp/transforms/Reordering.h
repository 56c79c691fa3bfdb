//===- Reordering.h - Moving operators within a block -----------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_REORDERING_H
#define CPP_TRANSFORMS_REORDERING_H

#include "mlir/IR/Operation.h"

namespace mlir::alpa {

/// What stands between two operators of a block and uses results of the second,
/// itself or by way of others, comes behind that.
void moveUsersBehind(Operation *first, Operation *op);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_REORDERING_H
