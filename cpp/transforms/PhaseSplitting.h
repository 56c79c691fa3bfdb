//===- PhaseSplitting.h - The programs of a planned stage -------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_PHASESPLITTING_H
#define CPP_TRANSFORMS_PHASESPLITTING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::alpa {

/// Cuts the planned function of a stage into one module per phase, nested in
/// `module` beside it: `forward`, `backward` and `apply_0`, `apply_1` ...; with
/// `splitBackward`, what only gradients of parameters need is
/// `backward_weight`, to be run later than `backward`.
///
/// Values that one phase makes and another needs become results and arguments
/// (`alpa.local`) in the sharding they are made in, partial ones included; an
/// `alpa.accumulate` becomes an addition to an argument (`alpa.accumulator`).
/// Cheap operators on constants are made again in every phase, and so is what
/// the backward phase reads and the function as one program would not store
/// (see Materialization.h): a micro-batch in flight keeps what it has to.
void splitPhases(ModuleOp module, func::FuncOp function, bool splitBackward);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_PHASESPLITTING_H
