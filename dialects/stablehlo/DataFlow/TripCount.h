//===- TripCount.h - How often a loop runs ----------------------*- C++ -*-===//

#ifndef DIALECTS_STABLEHLO_DATAFLOW_TRIPCOUNT_H
#define DIALECTS_STABLEHLO_DATAFLOW_TRIPCOUNT_H

#include "stablehlo/dialect/StablehloOps.h"
#include <optional>

namespace mlir::stablehlo {

/// Trip count of a counted loop: a carried integer that starts at a constant,
/// grows by a positive constant and is compared (LT or LE) with a constant, as
/// JAX lowers `lax.scan` and `lax.fori_loop`. None for other loops.
std::optional<int64_t> getTripCount(WhileOp loop);

} // namespace mlir::stablehlo

#endif // DIALECTS_STABLEHLO_DATAFLOW_TRIPCOUNT_H
