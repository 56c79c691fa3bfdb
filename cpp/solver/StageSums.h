//===- StageSums.h - One pass of the programme over stages ------*- C++ -*-===//

#ifndef CPP_SOLVER_STAGESUMS_H
#define CPP_SOLVER_STAGESUMS_H

#include "llvm/ADT/ArrayRef.h"
#include <cstdint>
#include <vector>

namespace mlir::alpa {

/// Ways to run a run of layers, one entry each, sorted by descending first
/// layer.
struct StageChoices {
  /// First and last layer, devices, and the largest number of stages from this
  /// one to the end that memory allows.
  llvm::ArrayRef<int64_t> firsts, lasts, sizes, limits;
  llvm::ArrayRef<double> times;
};

/// Least sums of times F[k, s, d] of s stages for the layers from k on, on d
/// devices, each stage taking at most `bound` (Alpa, OSDI 2022, Eq. 3):
///
///   F[k, s, d] = min over choices from layer k of  t + F[last + 1, s - 1, d -
///   z]
///
/// s runs from 0 to `mostStages` + 1; the last entry stands for all larger
/// numbers. With `mostStages` = -1 there is that entry alone: s is left out.
/// For layer k only d in [lows[k], highs[k]) is computed; elsewhere F is
/// infinite.
///
/// \returns (numLayers + 1) x (mostStages + 2) x (numDevices + 1) sums.
std::vector<double> getStageSums(const StageChoices &choices, int64_t numLayers,
                                 int64_t numDevices, int64_t mostStages,
                                 double bound, llvm::ArrayRef<int64_t> lows,
                                 llvm::ArrayRef<int64_t> highs);

} // namespace mlir::alpa

#endif // CPP_SOLVER_STAGESUMS_H
