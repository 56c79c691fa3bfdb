//===- Dependence.h - Whether operators wait for others ---------*- C++ -*-===//

#ifndef CPP_ANALYSIS_DEPENDENCE_H
#define CPP_ANALYSIS_DEPENDENCE_H

#include "mlir/IR/Operation.h"
#include <climits>

namespace mlir::alpa {

/// True if an operator depends on another one of its block; also where
/// more than `most` operators lie between them, among which it is looked for.
bool dependsOn(Operation *op, Operation *other, unsigned most = UINT_MAX);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_DEPENDENCE_H
