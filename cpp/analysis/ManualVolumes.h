//===- ManualVolumes.h - What computations by hand move ---------*- C++ -*-===//

#ifndef CPP_ANALYSIS_MANUALVOLUMES_H
#define CPP_ANALYSIS_MANUALVOLUMES_H

#include "cpp/analysis/StrategyGraph.h"
#include "dialects/alpa/Alpa.h"
#include "mlir/IR/BuiltinAttributes.h"

namespace mlir::alpa {

/// What exchanges rows of which data say how many: `jax.lax.ragged_all_to_all`.
inline constexpr llvm::StringLiteral kRaggedAllToAllTarget =
    "ragged_all_to_all";

/// The groups of an exchange of rows, `tensor<groups x devices>`; null if it
/// does not say them.
DenseIntElementsAttr getRaggedGroups(Operation *op);

/// One collective in the body of a computation that its author has split.
struct ManualVolume {
  Operation *op;
  VolumeStep step;
  /// How often it runs in one run of the body.
  double runs;
};

/// How often an operator of the body runs in one run of it.
double getRunsInBody(Operation *inner, ManualOp op);

/// The collectives of the body, in order. Along which mesh axes they go follows
/// from their groups. An exchange of rows is taken to fill the smaller of what
/// it sends from and what it writes to; data may leave out some.
std::vector<ManualVolume> getManualVolumes(ManualOp op);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_MANUALVOLUMES_H
