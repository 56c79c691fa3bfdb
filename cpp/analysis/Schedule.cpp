//===- Schedule.cpp - The order in which a block runs ---------------------===//

#include "cpp/analysis/Schedule.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/GradientCuts.h"
#include "cpp/analysis/JoinedUpdates.h"
#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/DataFlow.h"
#include "dialects/alpa/Sharding.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpDefinition.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::alpa {

/// Sums of so many bytes of gradients are joined to one, as far as the programs
/// of benchmarks/memory.py show.
static constexpr double kJoinedBytes = 256 << 20;

/// Bytes that other kernels move in the time in which a byte is gathered from
/// other devices, and operations of a product in that of a byte moved: what XLA
/// estimates for the links, the memory and the products of an H100. Heuristic.
static constexpr double kMovedBesideGather = 12, kOperationsPerByte = 150;

/// Operators of a fusion among which it is looked for what they wait for. Keeps
/// the analysis linear.
static constexpr unsigned kMostFused = 32;

bool beginsLayer(Operation *op, std::optional<int64_t> &last) {
  if (getPhase(op) != kBackwardPhase) {
    return false;
  }
  auto layer = op->getAttrOfType<IntegerAttr>(kLayerAttrName);
  bool isLower = layer && (!last || layer.getInt() < *last);
  if (isLower) {
    last = layer.getInt();
  }
  return isLower || isa<stablehlo::OptimizationBarrierOp>(op);
}

/// True for a sum of which all devices of the program take parts.
static bool isSumOverAllDevices(Operation *op) {
  auto scatter = dyn_cast<stablehlo::ReduceScatterOp>(op);
  return scatter &&
         scatter.getReplicaGroups().getShapedType().getDimSize(0) == 1;
}

/// True for a gradient that is larger than what it is made of, and is summed
/// over all devices. XLA for TPU makes such a sum whole on each of them, while
/// nothing else runs: it takes kernels first that free more.
static bool takesMoreThanItFrees(Operation *op) {
  double freed = 0;
  for (Type type : op->getOperandTypes()) {
    freed += getTensorBytes(type);
  }
  return op->getNumResults() == 1 &&
         getTensorBytes(op->getResult(0).getType()) > freed &&
         llvm::all_of(op->getUsers(), isSumOverAllDevices);
}

/// True for a collective that sends what an earlier loop has made to a later
/// one.
static bool isBetweenLoops(Operation *op) {
  Operation *maker =
      op->getNumOperands() > 0 ? op->getOperand(0).getDefiningOp() : nullptr;
  return isAsynchronous(op) && isa_and_nonnull<DataFlowOpInterface>(maker) &&
         maker->getBlock() == op->getBlock() &&
         llvm::any_of(op->getUsers(), [&](Operation *user) {
           return isa<DataFlowOpInterface>(user) &&
                  user->getBlock() == op->getBlock();
         });
}

/// The time of an operator, in bytes that are moved while it runs.
static double getTime(Operation *op, FusionRoles &roles) {
  if (auto dot = dyn_cast<stablehlo::DotGeneralOp>(op)) {
    double operations = 2.0 * countElements(dot.getType());
    for (int64_t dim :
         dot.getDotDimensionNumbers().getLhsContractingDimensions()) {
      operations *=
          cast<RankedTensorType>(dot.getLhs().getType()).getDimSize(dim);
    }
    return operations / kOperationsPerByte;
  }
  bool isWritten = llvm::any_of(op->getUsers(), [&](Operation *user) {
    return roles.get(user) == FusionRole::Kernel;
  });
  FusionRole role = roles.get(op);
  if (isAsynchronous(op) || role == FusionRole::View ||
      role == FusionRole::Generated) {
    return 0;
  }
  if (role == FusionRole::Root || isWritten) {
    double bytes = 0;
    for (Type type : op->getOperandTypes()) {
      bytes = std::max(bytes, getTensorBytes(type));
    }
    return op->getNumResults() > 0
               ? bytes + getTensorBytes(op->getResult(0).getType())
               : 0;
  }
  return 0;
}

/// Puts collectives between loops in front of the kernels that run in the time
/// that they take: nothing runs beside a loop that communicates, and what is
/// sent is there long before. Those that come right behind a loop go before it
/// if the kernels there take all of their time. One collective runs at a time.
///
/// \param urgent what kernels wait for; the rest is put off.
static void sendEarly(std::vector<Operation *> &order, FusionRoles &roles,
                      const llvm::DenseSet<Operation *> &urgent) {
  std::vector<Operation *> sent;
  llvm::copy_if(order, std::back_inserter(sent), isBetweenLoops);
  auto limit = order.end();
  for (Operation *op : llvm::reverse(sent)) {
    Operation *maker = op->getOperand(0).getDefiningOp();
    double left =
        kMovedBesideGather * getTensorBytes(op->getResult(0).getType());
    bool isBeside = false, isCrossed = false;
    auto place = llvm::find(order, op);
    auto start = std::min(place, limit);
    for (; left > 0 && start != order.begin(); --start) {
      Operation *before = *std::prev(start);
      bool isLoop = isa<DataFlowOpInterface>(before);
      if (before == maker || (isLoop && isBeside)) {
        break;
      }
      isCrossed |= isLoop;
      double time =
          !isLoop && urgent.contains(before) ? getTime(before, roles) : 0;
      isBeside |= time > 0;
      left -= time;
    }
    if (isCrossed && left > 0) {
      continue;
    }
    std::rotate(start, place, std::next(place));
    limit = start;
  }
}

namespace {

/// Puts the operators of a block in order.
class Schedule {
public:
  Schedule(Block &block, FusionRoles &roles, bool overlaps, int64_t numDevices,
           bool isOrdered)
      : block(block), roles(roles), numDevices(numDevices),
        isLayered(llvm::any_of(
            block, [](Operation &op) { return op.hasAttr(kLayerAttrName); })),
        isForTpu(roles.getBackend() == Backend::Tpu),
        putsOff(!isForTpu && (overlaps || isLayered)) {
    if (putsOff && !isLayered) {
      updates = findJoinedUpdates(block, roles);
    }
    urgent = findUrgent(block, roles);
    if (putsOff && !isLayered) {
      if (isOrdered && isa<func::FuncOp>(block.getParentOp())) {
        findAwaitedGradients();
      }
      findForGradients();
      findForResults();
    }
  }

  std::vector<Operation *> run() {
    std::optional<int64_t> layer;
    for (Operation &op : block) {
      // No gradient is put off behind a loop.
      if (beginsLayer(&op, layer) ||
          (!isLayered && isa<stablehlo::WhileOp>(op))) {
        flush();
      }
      if (Operation *update = updates.lookup(&op)) {
        placeWithOperands(update);
      }
      if (isLate(&op)) {
        late.push_back(&op);
      } else if (forGradients.contains(&op) || forResults.contains(&op)) {
        continue;
      } else if (isReady(&op) && !isPutOff(&op) && !isOfJoined(&op)) {
        place(&op);
      } else if (isLayered || isGradient(&op)) {
        deferred.push_back(&op);
      }
    }
    flush();
    for (Operation &op : block) {
      place(&op);
    }
    if (putsOff && !isLayered) {
      sendEarly(order, roles, urgent);
    }
    return std::move(order);
  }

private:
  /// Finds the gradients that the backward phase will wait for.
  void findAwaitedGradients() {
    for (const GradientCut &cut :
         findGradientCuts(block, roles, urgent, numDevices)) {
      for (Value gradient : cut.gradients) {
        waitedFor.insert(gradient.getDefiningOp());
      }
    }
    urgent.insert(waitedFor.begin(), waitedFor.end());
  }

  /// Finds what is computed for gradients alone, such as the slices of a value
  /// that a device reads: it is computed with them.
  void findForGradients() {
    for (Operation &op : llvm::reverse(block)) {
      bool isForGradients =
          !op.use_empty() && !isAwaited(&op, roles) && !isAsynchronous(&op) &&
          op.getNumOperands() > 0 && op.getNumRegions() == 0 &&
          llvm::all_of(op.getUsers(), [&](Operation *user) {
            return user->getBlock() == &block &&
                   (isGradient(user) || forGradients.contains(user));
          });
      if (isForGradients) {
        forGradients.insert(&op);
      }
    }
  }

  /// Finds what is gathered to be returned, such as updated parameters: nothing
  /// waits for it, so it comes last.
  void findForResults() {
    for (Operation &op : llvm::reverse(block)) {
      bool isForResults = !op.use_empty() &&
                          (isa<stablehlo::AllGatherOp>(op) ||
                           roles.get(&op) == FusionRole::View) &&
                          llvm::all_of(op.getUsers(), [&](Operation *user) {
                            return forResults.contains(user) ||
                                   (user->hasTrait<OpTrait::IsTerminator>() &&
                                    user->getBlock() == &block);
                          });
      if (isForResults) {
        forResults.insert(&op);
      }
    }
  }

  /// A kernel that no other one waits for.
  bool isGradient(Operation *op) {
    return !urgent.contains(op) && isAwaited(op, roles);
  }

  /// A gradient that is computed behind all that other kernels wait for.
  bool isPutOff(Operation *op) {
    return isGradient(op) &&
           (putsOff || (isForTpu && !isLayered && takesMoreThanItFrees(op)));
  }

  /// A reduction of columns that no kernel waits for: the gradient of a bias,
  /// or of the scale of a norm. XLA runs it beside the sums of the others.
  bool isLate(Operation *op) {
    return putsOff && !isLayered && !urgent.contains(op) &&
           isShortColumnSum(op, numDevices);
  }

  bool isReady(Operation *op) {
    bool ready = !op->hasTrait<OpTrait::IsTerminator>();
    forEachUsedValue(op, [&](Value used) {
      Operation *maker = used.getDefiningOp();
      ready &= !maker || maker->getBlock() != &block || placed.contains(maker);
    });
    return ready;
  }

  /// True if all that an operator waits for is computed in its fusion, such as
  /// a device's part of an argument.
  bool waitsForFused(Operation *op) {
    if (op->hasTrait<OpTrait::IsTerminator>()) {
      return false;
    }
    SmallVector<Operation *> work{op};
    llvm::SmallDenseSet<Operation *, 16> seen;
    bool isFused = true;
    while (isFused && !work.empty()) {
      forEachUsedValue(work.pop_back_val(), [&](Value used) {
        Operation *maker = used.getDefiningOp();
        if (!maker || maker->getBlock() != &block || placed.contains(maker) ||
            !seen.insert(maker).second) {
          return;
        }
        FusionRole role = roles.get(maker);
        isFused &= seen.size() <= kMostFused && role != FusionRole::Kernel &&
                   role != FusionRole::Root;
        work.push_back(maker);
      });
    }
    return isFused;
  }

  /// Places an operator and what follows it.
  void place(Operation *op) {
    if (placed.insert(op).second) {
      order.push_back(op);
      // Gradients that others wait for are sent with the next ones, behind the
      // barrier if it is there already.
      if (waitedFor.contains(op) ||
          (putsOff && !isLayered &&
           isa<stablehlo::OptimizationBarrierOp>(op))) {
        join(op);
      } else {
        follow({op});
      }
    }
  }

  /// Places an operator behind all that it is made from.
  void placeWithOperands(Operation *op) {
    placeBehindOperands(
        op, [&](Operation *maker) { return !placed.contains(maker); },
        [&](Operation *next) { place(next); });
  }

  /// Places what is made of gradients and is ready: their sums over devices,
  /// the updates of their parameters. In a stage with layers the order is that
  /// of the program, of which a layer by itself is a part.
  void follow(SmallVector<Operation *> work) {
    if (isLayered) {
      return;
    }
    // The last is taken first: of one gradient everything is made before the
    // next one's.
    std::reverse(work.begin(), work.end());
    while (!work.empty()) {
      Operation *maker = work.pop_back_val();
      SmallVector<Operation *> ready;
      for (Operation *user : maker->getUsers()) {
        if (user->getBlock() == &block && !urgent.contains(user) &&
            !isAwaited(user, roles) && !isLate(user) &&
            !forGradients.contains(user) && !forResults.contains(user) &&
            getPhase(user) == getPhase(maker) && !placed.contains(user) &&
            (isReady(user) || (isForTpu && waitsForFused(user)))) {
          placeBehindOperands(
              user, [&](Operation *op) { return !placed.contains(op); },
              [&](Operation *op) {
                placed.insert(op);
                ready.push_back(op);
              });
        }
      }
      llvm::sort(ready, [](Operation *left, Operation *right) {
        return left->isBeforeInBlock(right);
      });
      llvm::append_range(order, ready);
      llvm::append_range(work, llvm::reverse(ready));
    }
  }

  /// Places what is computed for a gradient alone before it.
  void placeForGradient(Operation *gradient) {
    forEachUsedValue(gradient, [&](Value used) {
      Operation *maker = used.getDefiningOp();
      if (maker && forGradients.contains(maker) && !placed.contains(maker)) {
        placeWithOperands(maker);
      }
    });
  }

  /// Places the gradients that were put off. Those whose sums are joined wait
  /// for each other.
  void flush() {
    // XLA's order is made from the end of the program backwards: the gradient
    // that could have been computed first, that of the head, comes last.
    if (putsOff && !isLayered && !deferred.empty()) {
      std::rotate(deferred.begin(), std::next(deferred.begin()),
                  deferred.end());
    }
    for (Operation *op : std::exchange(deferred, {})) {
      placeForGradient(op);
      if (placed.insert(op).second) {
        order.push_back(op);
        join(op);
      }
    }
    followJoined();
    for (Operation *op : std::exchange(late, {})) {
      place(op);
    }
  }

  /// True for what is made of gradients that wait for others.
  bool isOfJoined(Operation *op) {
    bool isOfJoined = false;
    forEachUsedValue(op, [&](Value used) {
      isOfJoined |= joined.contains(used.getDefiningOp());
    });
    return isOfJoined && !urgent.contains(op) && !isAwaited(op, roles);
  }

  /// Gradients whose sums are joined wait for each other.
  void join(Operation *op) {
    joined.insert(op);
    for (Value result : op->getResults()) {
      bool isSummed = llvm::none_of(result.getUsers(), [&](Operation *user) {
        return urgent.contains(user);
      });
      joinedBytes += isSummed ? getTensorBytes(result.getType()) : 0;
    }
    if (isForTpu || joinedBytes >= kJoinedBytes) {
      followJoined();
    }
  }

  void followJoined() {
    joinedBytes = 0;
    follow(joined.takeVector());
  }

  Block &block;
  FusionRoles &roles;
  int64_t numDevices;
  bool isLayered, isForTpu, putsOff;
  /// See `findJoinedUpdates`.
  DenseMap<Operation *, Operation *> updates;
  llvm::DenseSet<Operation *> urgent, waitedFor, forGradients, forResults,
      placed;
  std::vector<Operation *> order, deferred, late;
  /// Placed already, in contrast to what is made of them.
  llvm::SmallSetVector<Operation *, 8> joined;
  double joinedBytes = 0;
};

} // namespace

std::vector<Operation *> getSchedule(Block &block, FusionRoles &roles,
                                     bool overlaps, int64_t numDevices,
                                     bool isOrdered) {
  return Schedule(block, roles, overlaps, numDevices, isOrdered).run();
}

void placeBehindOperands(Operation *op,
                         function_ref<bool(Operation *)> isMissing,
                         function_ref<void(Operation *)> place) {
  SmallVector<Operation *> work{op};
  while (!work.empty()) {
    size_t numWaiting = work.size();
    forEachUsedValue(work.back(), [&](Value used) {
      Operation *maker = used.getDefiningOp();
      if (maker && maker->getBlock() == op->getBlock() && isMissing(maker)) {
        work.push_back(maker);
      }
    });
    if (work.size() == numWaiting) {
      place(work.pop_back_val());
    }
  }
}

bool hasCollectives(func::FuncOp function) {
  return function
      .walk([](Operation *op) {
        return isAsynchronous(op) ? WalkResult::interrupt()
                                  : WalkResult::advance();
      })
      .wasInterrupted();
}

} // namespace mlir::alpa
