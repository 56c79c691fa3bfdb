//===- HostValues.h - What lies in the memory of the host -------*- C++ -*-===//
//
// A device moves values to the memory of its host and back
// (`annotate_device_placement`): the state of an optimiser, what the backward
// phase will read. In between they take none of the device's memory.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_HOSTVALUES_H
#define CPP_ANALYSIS_HOSTVALUES_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::alpa {

/// The values of a function that lie in the memory of the host: what is moved
/// there, what loops carry and stack of it, and arguments.
///
/// \param isOnHost says of an argument whether it does. Without it, those do of
///        which nothing is read but what is moved to the device: of a program
///        that was imported, since `dropIdleMoves` left no other such moves.
llvm::DenseSet<Value>
findHostValues(func::FuncOp function,
               function_ref<bool(BlockArgument)> isOnHost = nullptr);

/// Drops moves to the device of what lies there. What arguments say of
/// themselves (`mhlo.memory_kind`, as jax writes it) is believed.
void dropIdleMoves(func::FuncOp function);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_HOSTVALUES_H
