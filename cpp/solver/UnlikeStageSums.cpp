//===- UnlikeStageSums.cpp - Stages on parts that are unlike --------------===//

#include "cpp/solver/UnlikeStageSums.h"

#include <algorithm>
#include <limits>

namespace mlir::alpa {

std::vector<double> getUnlikeStageSums(const UnlikeStageChoices &choices,
                                       int64_t numLayers,
                                       llvm::ArrayRef<int64_t> deviceCounts,
                                       int64_t mostStages) {
  const StageChoices &stages = choices.stages;
  int64_t numCounts = mostStages + 2;
  int64_t numParts = deviceCounts.size();
  // Places of numbers of devices, the last part's next to each other.
  std::vector<int64_t> strides(numParts);
  int64_t width = 1;
  for (int64_t part = numParts - 1; part >= 0; --part) {
    strides[part] = width;
    width *= deviceCounts[part] + 1;
  }
  std::vector<double> sums((numLayers + 1) * numParts * numCounts * width,
                           std::numeric_limits<double>::infinity());
  auto at = [&](int64_t layer, int64_t part, int64_t count) {
    return sums.data() +
           ((layer * numParts + part) * numCounts + count) * width;
  };
  for (int64_t part = 0; part < numParts; ++part) {
    *at(numLayers, part, 0) = 0;
  }
  for (size_t row = 0; row < stages.times.size(); ++row) {
    int64_t first = stages.firsts[row], next = stages.lasts[row] + 1;
    int64_t part = choices.parts[row], before = choices.sources[row];
    double time = stages.times[row];
    int64_t taken = stages.sizes[row] * strides[part];
    int64_t block = (deviceCounts[part] + 1) * strides[part];
    auto extend = [&](int64_t from, int64_t to) {
      const double *source = at(next, part, from);
      double *target = at(first, before, to);
      for (int64_t start = 0; start < width; start += block) {
        for (int64_t place = start + taken; place < start + block; ++place) {
          target[place] = std::min(target[place], source[place - taken] + time);
        }
      }
    };
    int64_t near = std::min(stages.limits[row], mostStages + 1);
    for (int64_t count = 1; count <= near; ++count) {
      extend(count - 1, count);
    }
    if (stages.limits[row] > mostStages) {
      extend(numCounts - 1, numCounts - 1);
    }
  }
  return sums;
}

} // namespace mlir::alpa
