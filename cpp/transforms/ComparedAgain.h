//===- ComparedAgain.h - Comparisons of what is made twice ------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_COMPAREDAGAIN_H
#define CPP_TRANSFORMS_COMPAREDAGAIN_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::alpa {

/// Where a phase has a value from.
enum class Origin {
  /// From outside of the step's operators, or the same everywhere.
  kOutside,
  /// An earlier phase has made it and hands it on.
  kKept,
  /// An earlier phase has made it, and this one makes it again.
  kAgain,
  /// This phase makes it alone.
  kOwn,
};

/// Whether an operator compares floats.
bool comparesFloats(Operation *op);

/// What a phase compares and makes again, rounded, while it is given something
/// that was made of it: programs round differently, and what the gradient of a
/// maximum finds equal to it where it was made is not equal to it any more.
SmallVector<Operation *>
findComparedAgain(Operation *comparison, function_ref<Origin(Value)> getOrigin);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_COMPAREDAGAIN_H
