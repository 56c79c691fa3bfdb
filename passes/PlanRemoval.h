//===- PlanRemoval.h - Taking the plan off a module -------------*- C++ -*-===//

#ifndef PASSES_PLANREMOVAL_H
#define PASSES_PLANREMOVAL_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"

namespace mlir::alpa {

/// The parts of a barrier wait for each other again, where the last one is;
/// so do those in regions of the block's operators.
void joinBarriers(Block &block);

/// Removes what planning has written on an operator.
void removePlan(Operation *op);

} // namespace mlir::alpa

#endif // PASSES_PLANREMOVAL_H
