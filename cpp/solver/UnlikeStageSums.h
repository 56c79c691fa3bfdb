//===- UnlikeStageSums.h - Stages on parts that are unlike ------*- C++ -*-===//

#ifndef CPP_SOLVER_UNLIKESTAGESUMS_H
#define CPP_SOLVER_UNLIKESTAGESUMS_H

#include "cpp/solver/StageSums.h"

namespace mlir::alpa {

/// Choices on a cluster of parts, one entry each: the part whose devices a
/// stage takes, and that of the stage before.
struct UnlikeStageChoices {
  StageChoices stages;
  llvm::ArrayRef<int64_t> parts, sources;
};

/// Least sums of times F[k, a, s, d_0, d_1, ...] of s stages for the layers
/// from k on, behind a stage of part a, on d_p devices of part p:
///
///   F[k, a, s, d] = min over choices from layer k behind a of
///                   t + F[last + 1, p, s - 1, d - z e_p]
///
/// Numbers of stages are those of `getStageSums`. A stage that begins the step
/// has 0 in place of the part before.
///
/// \returns (numLayers + 1) x parts x (mostStages + 2) x (deviceCounts[0] + 1)
///   x (deviceCounts[1] + 1) x ... sums.
std::vector<double> getUnlikeStageSums(const UnlikeStageChoices &choices,
                                       int64_t numLayers,
                                       llvm::ArrayRef<int64_t> deviceCounts,
                                       int64_t mostStages);

} // namespace mlir::alpa

#endif // CPP_SOLVER_UNLIKESTAGESUMS_H
