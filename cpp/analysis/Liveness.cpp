//===- Liveness.cpp - Memory of a per-device module -----------------------===//

#include "cpp/analysis/Liveness.h"

#include "cpp/analysis/Entry.h"
#include "cpp/analysis/Materialization.h"
#include "cpp/analysis/Schedule.h"
#include "cpp/analysis/StrategyGraph.h"
#include "dialects/alpa/Sharding.h"

namespace mlir::alpa {

FailureOr<MemoryProfile> getMemoryProfile(ModuleOp module,
                                          ArrayRef<int64_t> donatedArguments,
                                          StringRef platform) {
  FailureOr<func::FuncOp> entry = getEntryFunction(module);
  if (failed(entry)) {
    return failure();
  }
  auto isDonated = [&](BlockArgument argument) {
    return llvm::is_contained(donatedArguments, argument.getArgNumber());
  };
  Materialization memory(*entry, isDonated,
                         {.overlaps = hasCollectives(*entry),
                          .isLocal = true,
                          .splitsSums = splitsSums(platform),
                          .backend = getBackend(platform)});
  int numPoints = memory.getNumPoints();
  std::vector<double> change(numPoints + 1, 0);
  for (const StoredValue &stored : memory.getStoredValues()) {
    double bytes = stored.ratio * getTensorBytes(stored.value.getType());
    change[stored.start] += bytes;
    change[stored.end + 1] -= bytes;
  }
  MemoryProfile profile;
  int peak = 0;
  double live = 0;
  for (int point = 0; point < numPoints; ++point) {
    live += change[point];
    if (live > profile.peakBytes) {
      profile.peakBytes = live;
      peak = point;
    }
  }
  for (const StoredValue &stored : memory.getStoredValues()) {
    double bytes = stored.ratio * getTensorBytes(stored.value.getType());
    if (stored.start <= peak && peak <= stored.end && bytes > 0) {
      auto argument = dyn_cast<BlockArgument>(stored.value);
      profile.live.push_back(
          {argument ? getReadableName(argument)
                    : getReadableName(stored.value.getDefiningOp()),
           bytes});
    }
  }
  llvm::sort(profile.live, [](const LiveTensor &left, const LiveTensor &right) {
    return std::tie(right.bytes, left.name) < std::tie(left.bytes, right.name);
  });
  return profile;
}

} // namespace mlir::alpa
