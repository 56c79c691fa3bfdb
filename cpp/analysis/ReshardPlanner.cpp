//===- ReshardPlanner.cpp - From one sharding to another ------------------===//

#include "cpp/analysis/ReshardPlanner.h"

#include <functional>
#include <mutex>
#include <queue>
#include <tuple>

namespace mlir::alpa {

Placement getPlacement(ShardingRowRef row, unsigned rank) {
  Placement placement;
  placement.dims.resize(rank);
  for (auto [axis, dim] : llvm::enumerate(row)) {
    if (dim >= 0) {
      placement.dims[dim].push_back(static_cast<uint8_t>(axis));
    } else if (dim == kPartial) {
      placement.partial |= 1u << axis;
    }
  }
  return placement;
}

/// Position of a device along each mesh axis; the last axis varies fastest.
static SmallVector<int64_t> getCoordinates(int64_t device,
                                           ArrayRef<int64_t> meshShape) {
  SmallVector<int64_t> coordinates(meshShape.size());
  for (size_t axis = meshShape.size(); axis-- > 0;) {
    coordinates[axis] = device % meshShape[axis];
    device /= meshShape[axis];
  }
  return coordinates;
}

/// A device is named by its block, and by its position among the devices that
/// hold the same block: a number below the number of devices.
static int64_t getBlockName(const Placement &placement, int64_t device,
                            ArrayRef<int64_t> meshShape) {
  SmallVector<int64_t> coordinates = getCoordinates(device, meshShape);
  int64_t name = 0;
  uint32_t used = placement.partial;
  auto append = [&](unsigned axis) {
    name = name * meshShape[axis] + coordinates[axis];
  };
  for (const auto &axes : placement.dims) {
    for (uint8_t axis : axes) {
      append(axis);
      used |= 1u << axis;
    }
  }
  for (unsigned axis = 0; axis < meshShape.size(); ++axis) {
    if (placement.partial >> axis & 1) {
      append(axis);
    }
  }
  for (unsigned axis = 0; axis < meshShape.size(); ++axis) {
    if (!(used >> axis & 1)) {
      append(axis);
    }
  }
  return name;
}

SmallVector<int64_t> getPermuteSources(const Placement &before,
                                       const Placement &after,
                                       ArrayRef<int64_t> meshShape) {
  int64_t numDevices = 1;
  for (int64_t size : meshShape) {
    numDevices *= size;
  }
  SmallVector<int64_t> holders(numDevices), sources(numDevices);
  for (int64_t device = 0; device < numDevices; ++device) {
    holders[getBlockName(before, device, meshShape)] = device;
  }
  for (int64_t device = 0; device < numDevices; ++device) {
    sources[device] = holders[getBlockName(after, device, meshShape)];
  }
  return sources;
}

/// The axes along which a permutation moves blocks. Copies of a block may come
/// from elsewhere than the axes of the two shardings say.
static SmallVector<unsigned, 2> getPermutedAxes(const ReshardStep &step,
                                                ArrayRef<int64_t> meshShape) {
  uint32_t moved = 0;
  for (auto [device, source] :
       llvm::enumerate(getPermuteSources(step.before, step.after, meshShape))) {
    SmallVector<int64_t> to = getCoordinates(device, meshShape);
    SmallVector<int64_t> from = getCoordinates(source, meshShape);
    for (unsigned axis = 0; axis < meshShape.size(); ++axis) {
      moved |= uint32_t(to[axis] != from[axis]) << axis;
    }
  }
  SmallVector<unsigned, 2> axes;
  for (unsigned axis = 0; axis < meshShape.size(); ++axis) {
    if (moved >> axis & 1) {
      axes.push_back(axis);
    }
  }
  return axes;
}

namespace {

/// Distance added per step, in elements: of two plans that move the same, the
/// one with fewer collectives wins.
constexpr double kStepPenalty = 1e-3;
/// Relative distance of a step that stays on the device.
constexpr double kLocalWeight = 1e-6;

class Search {
public:
  Search(ArrayRef<int64_t> shape, ArrayRef<int64_t> meshShape,
         const Placement &target)
      : shape(shape), meshShape(meshShape), target(target),
        targetDim(meshShape.size(), kReplicated) {
    for (auto [dim, axes] : llvm::enumerate(target.dims)) {
      for (uint8_t axis : axes) {
        targetDim[axis] = static_cast<int8_t>(dim);
      }
    }
    for (unsigned axis = 0; axis < meshShape.size(); ++axis) {
      if (target.partial >> axis & 1) {
        targetDim[axis] = kPartial;
      }
    }
  }

  /// All steps out of `state` that may lie on a cheapest way to the target.
  std::vector<ReshardStep> expand(const Placement &state) const {
    std::vector<ReshardStep> steps;
    reducePartial(state, steps);
    moveSplit(state, steps);
    splitMore(state, steps);
    permute(state, steps);
    return steps;
  }

private:
  int64_t getShards(const Placement &state, unsigned dim) const {
    int64_t shards = 1;
    for (uint8_t axis : state.dims[dim]) {
      shards *= meshShape[axis];
    }
    return shards;
  }

  double getLocalElements(const Placement &state) const {
    double elements = 1;
    for (auto [dim, size] : llvm::enumerate(shape)) {
      elements *= static_cast<double>(size / getShards(state, dim));
    }
    return elements;
  }

  bool canSplit(const Placement &state, unsigned dim,
                ArrayRef<unsigned> axes) const {
    int64_t shards = getShards(state, dim);
    for (unsigned axis : axes) {
      shards *= meshShape[axis];
    }
    return shape[dim] % shards == 0;
  }

  ReshardStep makeStep(CollectiveKind kind, ArrayRef<unsigned> axes,
                       const Placement &state, Placement after, int fromDim,
                       int toDim) const {
    ReshardStep step;
    step.kind = kind;
    step.axes.assign(axes.begin(), axes.end());
    step.fromDim = fromDim;
    step.toDim = toDim;
    step.elements =
        getLocalElements(kind == CollectiveKind::AllGather ? after : state);
    step.after = std::move(after);
    return step;
  }

  void reducePartial(const Placement &state,
                     std::vector<ReshardStep> &steps) const {
    uint32_t open = state.partial & ~target.partial;
    for (uint32_t subset = open; subset; subset = (subset - 1) & open) {
      SmallVector<unsigned, 2> axes;
      for (unsigned axis = 0; axis < meshShape.size(); ++axis) {
        if (subset >> axis & 1) {
          axes.push_back(axis);
        }
      }
      Placement reduced = state;
      reduced.partial &= ~subset;
      steps.push_back(
          makeStep(CollectiveKind::AllReduce, axes, state, reduced, -1, -1));
      int8_t dim = targetDim[axes.front()];
      bool sameDim = llvm::all_of(
          axes, [&](unsigned axis) { return targetDim[axis] == dim; });
      if (dim >= 0 && sameDim && canSplit(state, dim, axes)) {
        reduced.dims[dim].append(axes.begin(), axes.end());
        steps.push_back(makeStep(CollectiveKind::ReduceScatter, axes, state,
                                 reduced, -1, dim));
      }
    }
  }

  void moveSplit(const Placement &state,
                 std::vector<ReshardStep> &steps) const {
    for (unsigned dim = 0; dim < state.dims.size(); ++dim) {
      const auto &axesOfDim = state.dims[dim];
      if (axesOfDim == target.dims[dim]) {
        continue;
      }
      for (size_t keep = 0; keep < axesOfDim.size(); ++keep) {
        SmallVector<unsigned, 2> suffix(axesOfDim.begin() + keep,
                                        axesOfDim.end());
        Placement without = state;
        without.dims[dim].truncate(keep);
        steps.push_back(makeStep(CollectiveKind::AllGather, suffix, state,
                                 without, static_cast<int>(dim), -1));
        int8_t to = targetDim[suffix.front()];
        bool sameTarget = llvm::all_of(
            suffix, [&](unsigned axis) { return targetDim[axis] == to; });
        if (!sameTarget || to == static_cast<int8_t>(dim)) {
          continue;
        }
        if (to >= 0 && canSplit(state, to, suffix)) {
          Placement moved = without;
          moved.dims[to].append(suffix.begin(), suffix.end());
          steps.push_back(makeStep(CollectiveKind::AllToAll, suffix, state,
                                   moved, static_cast<int>(dim), to));
        }
        if (to == kPartial) {
          Placement placed = without;
          for (unsigned axis : suffix) {
            placed.partial |= 1u << axis;
          }
          steps.push_back(makeStep(CollectiveKind::Local, suffix, state, placed,
                                   static_cast<int>(dim), -1));
        }
      }
    }
  }

  void splitMore(const Placement &state,
                 std::vector<ReshardStep> &steps) const {
    uint32_t used = state.partial;
    for (const auto &axes : state.dims) {
      for (uint8_t axis : axes) {
        used |= 1u << axis;
      }
    }
    for (unsigned axis = 0; axis < meshShape.size(); ++axis) {
      int8_t dim = targetDim[axis];
      if ((used >> axis & 1) || dim == kReplicated) {
        continue;
      }
      Placement after = state;
      if (dim == kPartial) {
        after.partial |= 1u << axis;
      } else if (canSplit(state, dim, axis)) {
        after.dims[dim].push_back(static_cast<uint8_t>(axis));
      } else {
        continue;
      }
      steps.push_back(makeStep(CollectiveKind::Local, axis, state, after, -1,
                               dim == kPartial ? -1 : dim));
    }
  }

  /// Blocks of the same shape change places: to the target, or within the
  /// dimensions so that their axes ascend.
  void permute(const Placement &state, std::vector<ReshardStep> &steps) const {
    Placement ascending = state;
    for (auto &axes : ascending.dims) {
      llvm::sort(axes);
    }
    for (const Placement &goal : {target, ascending}) {
      if (goal == state || goal.partial != state.partial) {
        continue;
      }
      bool sameBlocks = true;
      for (unsigned dim = 0; dim < state.dims.size(); ++dim) {
        sameBlocks &= getShards(state, dim) == getShards(goal, dim);
      }
      if (sameBlocks) {
        // Its axes are found once the plan is.
        steps.push_back(makeStep(CollectiveKind::CollectivePermute, {}, state,
                                 goal, -1, -1));
      }
    }
  }

  ArrayRef<int64_t> shape;
  ArrayRef<int64_t> meshShape;
  const Placement &target;
  SmallVector<int8_t, 4> targetDim;
};

std::string getKey(const Placement &state) {
  std::string key(1, static_cast<char>(state.partial + 1));
  for (const auto &axes : state.dims) {
    for (uint8_t axis : axes) {
      key += static_cast<char>('0' + axis);
    }
    key += ',';
  }
  return key;
}

} // namespace

double ReshardPlanner::getMovedElements(const ReshardStep &step) const {
  double n = 1;
  for (unsigned axis : step.axes) {
    n *= static_cast<double>(meshShape[axis]);
  }
  double ring = (n - 1) / n * step.elements;
  switch (step.kind) {
  case CollectiveKind::AllReduce:
    return 2 * ring + kStepPenalty;
  case CollectiveKind::AllGather:
  case CollectiveKind::ReduceScatter:
  case CollectiveKind::AllToAll:
    return ring + kStepPenalty;
  case CollectiveKind::CollectivePermute:
    return step.elements + kStepPenalty;
  case CollectiveKind::Local:
    return kLocalWeight * step.elements + kLocalWeight;
  }
  llvm_unreachable("unknown collective");
}

/// No state comes before.
static constexpr unsigned kNone = ~0u;

namespace {

/// A state that the search has come to.
struct Visit {
  StringRef key;
  double distance;
  /// The step that leads here, and where it begins.
  ReshardStep step;
  unsigned previous;
  bool done = false;
};

} // namespace

/// The steps that lead to the state numbered `at`.
static ReshardPlan takeSteps(std::vector<Visit> &visits, unsigned at,
                             ArrayRef<int64_t> meshShape) {
  ReshardPlan plan;
  for (; visits[at].previous != kNone; at = visits[at].previous) {
    ReshardStep &step = plan.emplace_back(std::move(visits[at].step));
    step.before = visits[visits[at].previous].step.after;
    if (step.kind == CollectiveKind::CollectivePermute) {
      step.axes = getPermutedAxes(step, meshShape);
    }
  }
  std::reverse(plan.begin(), plan.end());
  return plan;
}

ReshardPlan ReshardPlanner::search(ArrayRef<int64_t> shape,
                                   const Placement &from,
                                   const Placement &to) const {
  Search search(shape, meshShape, to);
  std::vector<Visit> visits;
  llvm::StringMap<unsigned> numbers;
  // Of states as far away as each other the one of the least key goes first.
  using Entry = std::tuple<double, StringRef, unsigned>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  auto visit = [&](ReshardStep step, double distance, unsigned previous) {
    auto [it, isNew] = numbers.try_emplace(getKey(step.after), visits.size());
    unsigned number = it->second;
    if (isNew) {
      visits.push_back({it->first(), distance, std::move(step), previous});
    } else if (Visit &known = visits[number];
               !known.done && distance < known.distance) {
      known.distance = distance;
      known.step = std::move(step);
      known.previous = previous;
    } else {
      return;
    }
    queue.push({distance, it->first(), number});
  };
  ReshardStep start;
  start.kind = CollectiveKind::Local;
  start.after = from;
  visit(std::move(start), 0, kNone);
  std::string goal = getKey(to);
  unsigned at = kNone;
  while (!queue.empty()) {
    double distance = std::get<0>(queue.top());
    at = std::get<2>(queue.top());
    queue.pop();
    if (visits[at].done) {
      continue;
    }
    visits[at].done = true;
    if (visits[at].key == goal) {
      break;
    }
    std::vector<ReshardStep> steps = search.expand(visits[at].step.after);
    for (ReshardStep &step : steps) {
      double length = getMovedElements(step);
      visit(std::move(step), distance + length, at);
    }
  }
  // Gathering everything and slicing again always leads to the target, so the
  // goal has been reached.
  return takeSteps(visits, at, meshShape);
}

namespace {

using SharedPlan = std::shared_ptr<const ReshardPlan>;

/// Plans that planners of this process have found, by mesh, shape and
/// shardings.
class FoundPlans {
public:
  static FoundPlans &get() {
    // Never destroyed: a thread may still plan when the process ends.
    static auto *plans = new FoundPlans;
    return *plans;
  }

  SharedPlan lookup(StringRef key) {
    std::lock_guard lock(mutex);
    return plans.lookup(key);
  }

  void insert(StringRef key, const SharedPlan &plan) {
    std::lock_guard lock(mutex);
    if (plans.size() >= kMostPlans) {
      plans.clear();
    }
    plans.try_emplace(key, plan);
  }

private:
  /// Beyond it all are forgotten (heuristic: tens of megabytes).
  static constexpr size_t kMostPlans = 1 << 16;

  std::mutex mutex;
  llvm::StringMap<SharedPlan> plans;
};

void append(std::string &key, ArrayRef<int64_t> sizes) {
  key.append(reinterpret_cast<const char *>(sizes.data()),
             sizes.size() * sizeof(int64_t));
}

} // namespace

const ReshardPlan &ReshardPlanner::getPlan(ArrayRef<int64_t> shape,
                                           ShardingRowRef from,
                                           ShardingRowRef to) {
  // The number of axes says where shape and shardings begin.
  std::string key(1, static_cast<char>(meshShape.size()));
  append(key, meshShape);
  append(key, shape);
  key.append(reinterpret_cast<const char *>(from.data()), from.size());
  key.append(reinterpret_cast<const char *>(to.data()), to.size());
  SharedPlan &own = cache[key];
  if (!own) {
    own = FoundPlans::get().lookup(key);
  }
  if (!own) {
    unsigned rank = shape.size();
    own = std::make_shared<const ReshardPlan>(
        from == to
            ? ReshardPlan()
            : search(shape, getPlacement(from, rank), getPlacement(to, rank)));
    FoundPlans::get().insert(key, own);
  }
  return *own;
}

} // namespace mlir::alpa
