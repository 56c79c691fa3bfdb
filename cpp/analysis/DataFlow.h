//===- DataFlow.h - What an operator uses and is used by --------*- C++ -*-===//

#ifndef CPP_ANALYSIS_DATAFLOW_H
#define CPP_ANALYSIS_DATAFLOW_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::alpa {

/// Calls `visit` for every value from outside that an operator or its regions
/// use, possibly more than once.
void forEachUsedValue(Operation *op, function_ref<void(Value)> visit);

/// Calls `visit` for every use of a value from outside in the regions of an
/// operator that are copied as they are: comparators, combiners. The regions of
/// loops and branches are planned, and those of manual computations use nothing
/// from outside.
void forEachCapture(Operation *op, function_ref<void(OpOperand &)> visit);

/// Adds all operators whose results `op` is made from.
void addAncestors(Operation *op, llvm::DenseSet<Operation *> &ancestors);

/// Adds every value of a block that is computed from some of `values`.
void addDependents(Block &block, llvm::DenseSet<Value> &values);

/// True if the operator can be made again anywhere without a change of the
/// program's results.
bool isClonable(Operation *op);

/// True if a value is zero everywhere: it is a summand as it is.
bool isZero(Value value);

/// The phase of an operator (`alpa.phase`); -1 if it has none.
int64_t getPhase(Operation *op);

/// Phases of a step; `kApplyPhase` is the first of those that run once.
inline constexpr int64_t kForwardPhase = 0;
inline constexpr int64_t kBackwardPhase = 1;
inline constexpr int64_t kApplyPhase = 2;

/// True for the operators through which values leave the micro-batches.
bool isJoin(Operation *op);

/// True if an operator runs once per step, whatever the number of
/// micro-batches.
bool runsOnce(Operation *op);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_DATAFLOW_H
