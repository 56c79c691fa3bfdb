//===- Readers.h - How often a value is computed again ----------*- C++ -*-===//

#ifndef CPP_ANALYSIS_READERS_H
#define CPP_ANALYSIS_READERS_H

#include "cpp/analysis/FusionRole.h"
#include "mlir/IR/Value.h"

namespace mlir::alpa {

/// True for an operator that leaves the positive part of a value.
bool isRectifier(Operation *op);

/// True if the readers of a value read any of its elements more than once:
/// slices that together are the value do not.
bool isReadAgain(Value value);

/// What of a tensor's elements makes another one as large as it is: a part of a
/// concatenation. Heuristic.
inline constexpr double kLargePart = 0.5;

/// How many of `sources` have about as many elements as a value.
unsigned countLarge(ArrayRef<Value> sources, Value value);

/// True for what ends its block, and is handed on from there.
bool isReturned(Value value);

/// True if a value is read by `op` alone, itself or through operators that
/// fusions compute, each of which one reads.
bool isReadThrough(Value value, Operation *op, FusionRoles &roles);

/// True if what reads a value comes together in one operator, whose fusion
/// computes the value once.
bool rejoins(Value value, FusionRoles &roles);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_READERS_H
