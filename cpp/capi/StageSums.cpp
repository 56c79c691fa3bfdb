//===- StageSums.cpp - The stage programme through the C interface --------===//

#include "cpp/solver/StageSums.h"
#include "cpp/capi/Result.h"
#include "cpp/capi/StablehloAlpa.h"

using namespace mlir::alpa;

/// Why the choices are none; empty if they are.
static std::string getMistake(const AlpaStageChoices &choices,
                              int64_t numLayers, int64_t numDevices,
                              int64_t mostStages, const int64_t *lows,
                              const int64_t *highs) {
  if (numLayers < 1 || numDevices < 1 || mostStages < -1 ||
      numLayers > (1 << 20) || numDevices > (1 << 20) ||
      mostStages > (1 << 20) ||
      (numLayers + 1) * (mostStages + 2) > (int64_t(1) << 34) / numDevices) {
    return "the numbers of layers, devices or stages are out of range";
  }
  for (size_t row = 0; row < choices.numChoices; ++row) {
    int64_t first = choices.firsts[row], last = choices.lasts[row];
    if (first < 0 || last < first || last >= numLayers ||
        choices.sizes[row] < 1 || choices.limits[row] < 1 ||
        (row > 0 && first > choices.firsts[row - 1])) {
      return "choice " + std::to_string(row) +
             " has layers, devices or a limit out of range or order";
    }
  }
  for (int64_t layer = 0; layer <= numLayers; ++layer) {
    if (lows[layer] < 0 || highs[layer] > numDevices + 1) {
      return "the devices of layer " + std::to_string(layer) +
             " are out of range";
    }
  }
  return {};
}

AlpaResult *alpaGetStageSums(const AlpaStageChoices *choices, int64_t numLayers,
                             int64_t numDevices, int64_t mostStages,
                             double bound, const int64_t *lows,
                             const int64_t *highs) {
  auto *result = new AlpaResult();
  std::string mistake =
      getMistake(*choices, numLayers, numDevices, mostStages, lows, highs);
  if (!mistake.empty()) {
    result->failed = true;
    result->error = mistake;
    return result;
  }
  size_t count = choices->numChoices;
  StageChoices rows{{choices->firsts, count},
                    {choices->lasts, count},
                    {choices->sizes, count},
                    {choices->limits, count},
                    {choices->times, count}};
  size_t numEntries = static_cast<size_t>(numLayers) + 1;
  result->addArray("sums",
                   getStageSums(rows, numLayers, numDevices, mostStages, bound,
                                {lows, numEntries}, {highs, numEntries}));
  return result;
}
