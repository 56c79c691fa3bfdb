//===- KnownValues.h - What is known of values at compile time --*- C++ -*-===//

#ifndef DIALECTS_STABLEHLO_SHARDINGRULES_KNOWNVALUES_H
#define DIALECTS_STABLEHLO_SHARDINGRULES_KNOWNVALUES_H

#include "mlir/IR/Value.h"
#include <optional>

namespace mlir::stablehlo {

/// The value that every element of `value` is known to have, if any.
std::optional<double> getKnownSplat(Value value);

/// The dimension along which every element of `value`, of integers, is known to
/// be its own position: that of an `iota`, also where JAX has written out that
/// negative numbers count from the end.
std::optional<int64_t> getKnownPositions(Value value);

/// What a value is in front of all loops that hand it on as it is.
Value getBeforeLoops(Value value);

/// Whether every element of `value` is known to lie in [-1, 1] or to be NaN:
/// products with it are as small as the other factor.
bool isKnownWithinOne(Value value);

} // namespace mlir::stablehlo

#endif // DIALECTS_STABLEHLO_SHARDINGRULES_KNOWNVALUES_H
