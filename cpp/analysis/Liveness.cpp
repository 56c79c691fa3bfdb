//===- Liveness.cpp - Memory of a per-device module -----------------------===//

#include "cpp/analysis/Liveness.h"

#include "cpp/analysis/Entry.h"
#include "cpp/analysis/StrategyGraph.h"
#include "dialects/alpa/ShardingRule.h"

namespace mlir::alpa {

static double getBytes(Value value) {
  Operation *maker = value.getDefiningOp();
  if (maker && hasShardingRule(maker) &&
      getOperatorRole(maker) == OperatorRole::Rematerialized) {
    return 0;
  }
  return getTensorBytes(value.getType());
}

FailureOr<MemoryProfile> getMemoryProfile(ModuleOp module,
                                          ArrayRef<int64_t> donatedArguments) {
  FailureOr<func::FuncOp> entry = getEntryFunction(module);
  if (failed(entry)) {
    return failure();
  }
  Block &block = entry->getBody().front();
  struct Range {
    Value value;
    int start, end;
    double bytes;
  };
  std::vector<Range> ranges;
  DenseMap<Operation *, int> points;
  int numPoints = 0;
  for (Operation &op : block) {
    points[&op] = numPoints++;
  }
  auto add = [&](Value value, int start, bool isHeld) {
    int end = isHeld ? numPoints - 1 : start;
    for (Operation *user : value.getUsers()) {
      if (Operation *inBlock = block.findAncestorOpInBlock(*user)) {
        end = std::max(end, points.lookup(inBlock));
      }
    }
    if (double bytes = getBytes(value); bytes > 0) {
      ranges.push_back({value, start, end, bytes});
    }
  };
  for (BlockArgument argument : block.getArguments()) {
    add(argument, 0,
        !llvm::is_contained(donatedArguments, argument.getArgNumber()));
  }
  for (Operation &op : block) {
    for (Value result : op.getResults()) {
      add(result, points.lookup(&op), false);
    }
  }
  std::vector<double> change(numPoints + 1, 0);
  for (const Range &range : ranges) {
    change[range.start] += range.bytes;
    change[range.end + 1] -= range.bytes;
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
  for (const Range &range : ranges) {
    if (range.start <= peak && peak <= range.end) {
      auto argument = dyn_cast<BlockArgument>(range.value);
      profile.live.push_back(
          {argument ? getReadableName(argument)
                    : getReadableName(range.value.getDefiningOp()),
           range.bytes});
    }
  }
  llvm::sort(profile.live, [](const LiveTensor &left, const LiveTensor &right) {
    return std::tie(right.bytes, left.name) < std::tie(left.bytes, right.name);
  });
  return profile;
}

} // namespace mlir::alpa
