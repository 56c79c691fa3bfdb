//===- Phases.h - When the operators of a step run --------------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_PHASES_H
#define CPP_TRANSFORMS_PHASES_H

#include "mlir/IR/Operation.h"

namespace mlir::alpa {

/// Writes the phase of an operator (`alpa.phase`); `getPhase` reads it.
void setPhase(Operation *op, int64_t phase);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_PHASES_H
