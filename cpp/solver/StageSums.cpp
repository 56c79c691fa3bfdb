//===- StageSums.cpp - One pass of the programme over stages --------------===//

#include "cpp/solver/StageSums.h"

#include <algorithm>
#include <limits>

namespace mlir::alpa {

std::vector<double> getStageSums(const StageChoices &choices, int64_t numLayers,
                                 int64_t numDevices, int64_t mostStages,
                                 double bound, llvm::ArrayRef<int64_t> lows,
                                 llvm::ArrayRef<int64_t> highs) {
  int64_t width = numDevices + 1;
  int64_t numCounts = mostStages + 2;
  std::vector<double> sums((numLayers + 1) * numCounts * width,
                           std::numeric_limits<double>::infinity());
  auto at = [&](int64_t layer, int64_t count) {
    return sums.data() + (layer * numCounts + count) * width;
  };
  *at(numLayers, 0) = 0;
  for (size_t row = 0; row < choices.times.size(); ++row) {
    double time = choices.times[row];
    if (time > bound) {
      continue;
    }
    int64_t first = choices.firsts[row];
    int64_t next = choices.lasts[row] + 1;
    int64_t size = choices.sizes[row];
    int64_t low = std::max(lows[first], size);
    int64_t high = highs[first];
    auto extend = [&](int64_t from, int64_t to) {
      const double *source = at(next, from) - size;
      double *target = at(first, to);
      for (int64_t devices = low; devices < high; ++devices) {
        target[devices] = std::min(target[devices], source[devices] + time);
      }
    };
    int64_t limit = choices.limits[row];
    int64_t near = std::min(limit, mostStages + 1);
    for (int64_t count = 1; count <= near; ++count) {
      extend(count - 1, count);
    }
    if (limit > mostStages) {
      extend(numCounts - 1, numCounts - 1);
    }
  }
  return sums;
}

} // namespace mlir::alpa
