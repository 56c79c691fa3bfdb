//===- Exactness.h - What every program makes the same bits of --*- C++ -*-===//

#ifndef CPP_ANALYSIS_EXACTNESS_H
#define CPP_ANALYSIS_EXACTNESS_H

#include "mlir/IR/Operation.h"

namespace mlir::alpa {

/// Whether an operator makes the same bits of the same operands in every
/// program: it hands on elements, or makes no floats. All others are rounded,
/// and differently in another fusion or shape: a sum in another order, a
/// product and a sum at once or one by one.
bool isExact(Operation *op);

/// Whether an operator hands on some elements of many: their largest, a row of
/// them, or all in another order. Those are compared with what they are of: the
/// gradient of a maximum goes to what equals it.
bool picksElements(Operation *op);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_EXACTNESS_H
