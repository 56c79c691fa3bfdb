//===- TripCount.h - How often a loop runs ----------------------*- C++ -*-===//

#ifndef CPP_ANALYSIS_TRIPCOUNT_H
#define CPP_ANALYSIS_TRIPCOUNT_H

#include "stablehlo/dialect/StablehloOps.h"
#include <optional>

namespace mlir::alpa {

/// Trip count of a counted loop: a carried integer that starts at a constant,
/// grows by a positive constant and is compared (LT or LE) with a constant, as
/// JAX lowers `lax.scan` and `lax.fori_loop`. None for other loops.
std::optional<int64_t> getTripCount(stablehlo::WhileOp loop);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_TRIPCOUNT_H
