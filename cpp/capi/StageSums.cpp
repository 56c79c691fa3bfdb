//===- StageSums.cpp - The stage programme through the C interface --------===//

#include "cpp/solver/StageSums.h"
#include "cpp/capi/Result.h"
#include "cpp/capi/StablehloAlpa.h"
#include "cpp/solver/UnlikeStageSums.h"

using namespace mlir::alpa;

/// As many sums as there may be.
static constexpr int64_t kMostSums = int64_t(1) << 34;

static bool isInRange(int64_t number, int64_t least) {
  return number >= least && number <= (1 << 20);
}

/// Why the choices are none; empty if they are.
static std::string getMistake(const AlpaStageChoices &choices,
                              int64_t numLayers) {
  for (size_t row = 0; row < choices.numChoices; ++row) {
    int64_t first = choices.firsts[row], last = choices.lasts[row];
    if (first < 0 || last < first || last >= numLayers ||
        choices.sizes[row] < 1 || choices.limits[row] < 1 ||
        (row > 0 && first > choices.firsts[row - 1])) {
      return "choice " + std::to_string(row) +
             " has layers, devices or a limit out of range or order";
    }
  }
  return {};
}

static std::string getMistake(const AlpaStageChoices &choices,
                              int64_t numLayers, int64_t numDevices,
                              int64_t mostStages, const int64_t *lows,
                              const int64_t *highs) {
  if (!isInRange(numLayers, 1) || !isInRange(numDevices, 1) ||
      !isInRange(mostStages, -1) ||
      (numLayers + 1) * (mostStages + 2) > kMostSums / numDevices) {
    return "the numbers of layers, devices or stages are out of range";
  }
  if (std::string mistake = getMistake(choices, numLayers); !mistake.empty()) {
    return mistake;
  }
  for (int64_t layer = 0; layer <= numLayers; ++layer) {
    if (lows[layer] < 0 || highs[layer] > numDevices + 1) {
      return "the devices of layer " + std::to_string(layer) +
             " are out of range";
    }
  }
  return {};
}

static std::string getMistake(const AlpaStageChoices &choices,
                              const int64_t *parts, const int64_t *sources,
                              int64_t numLayers,
                              llvm::ArrayRef<int64_t> deviceCounts,
                              int64_t mostStages) {
  if (!isInRange(numLayers, 1) || !isInRange(mostStages, -1) ||
      deviceCounts.empty()) {
    return "the numbers of layers, parts or stages are out of range";
  }
  int64_t numParts = deviceCounts.size();
  int64_t left = kMostSums / ((numLayers + 1) * (mostStages + 2)) / numParts;
  for (int64_t count : deviceCounts) {
    if (!isInRange(count, 1) || (left /= count + 1) == 0) {
      return "the numbers of devices are out of range";
    }
  }
  if (std::string mistake = getMistake(choices, numLayers); !mistake.empty()) {
    return mistake;
  }
  for (size_t row = 0; row < choices.numChoices; ++row) {
    if (parts[row] < 0 || parts[row] >= numParts || sources[row] < 0 ||
        sources[row] >= numParts ||
        choices.sizes[row] > deviceCounts[parts[row]]) {
      return "choice " + std::to_string(row) +
             " has a part, or devices of it, out of range";
    }
  }
  return {};
}

static StageChoices getRows(const AlpaStageChoices &choices) {
  size_t count = choices.numChoices;
  return {{choices.firsts, count},
          {choices.lasts, count},
          {choices.sizes, count},
          {choices.limits, count},
          {choices.times, count}};
}

static AlpaResult *getRefusal(std::string mistake) {
  auto *result = new AlpaResult();
  result->failed = true;
  result->error = std::move(mistake);
  return result;
}

AlpaResult *alpaGetStageSums(const AlpaStageChoices *choices, int64_t numLayers,
                             int64_t numDevices, int64_t mostStages,
                             double bound, const int64_t *lows,
                             const int64_t *highs) {
  if (std::string mistake =
          getMistake(*choices, numLayers, numDevices, mostStages, lows, highs);
      !mistake.empty()) {
    return getRefusal(std::move(mistake));
  }
  auto *result = new AlpaResult();
  size_t numEntries = static_cast<size_t>(numLayers) + 1;
  result->addArray(
      "sums", getStageSums(getRows(*choices), numLayers, numDevices, mostStages,
                           bound, {lows, numEntries}, {highs, numEntries}));
  return result;
}

AlpaResult *alpaGetUnlikeStageSums(const AlpaStageChoices *choices,
                                   const int64_t *parts, const int64_t *sources,
                                   int64_t numLayers,
                                   const int64_t *deviceCounts, size_t numParts,
                                   int64_t mostStages) {
  llvm::ArrayRef<int64_t> devices(deviceCounts, numParts);
  if (std::string mistake =
          getMistake(*choices, parts, sources, numLayers, devices, mostStages);
      !mistake.empty()) {
    return getRefusal(std::move(mistake));
  }
  size_t count = choices->numChoices;
  UnlikeStageChoices rows{getRows(*choices), {parts, count}, {sources, count}};
  auto *result = new AlpaResult();
  result->addArray("sums",
                   getUnlikeStageSums(rows, numLayers, devices, mostStages));
  return result;
}
