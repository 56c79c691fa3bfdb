//===- OperatorMerging.cpp - Light operators follow -----------------------===//

#include "cpp/transforms/OperatorMerging.h"

#include "cpp/analysis/ArgumentUses.h"
#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/FactorMapping.h"
#include "cpp/analysis/LoopSums.h"
#include "cpp/analysis/OperatorRoles.h"
#include "cpp/analysis/SharedReads.h"
#include "cpp/transforms/Phases.h"
#include "cpp/transforms/WholeRemarks.h"
#include "dialects/alpa/Sharding.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/MapVector.h"
#include <cmath>
#include <functional>

namespace mlir::alpa {

namespace {

/// Longest chain of cheap operators on constants that is made again per use.
constexpr unsigned kMaxRematerializedChain = 4;

struct ValueState {
  enum Kind { Replicated, Rematerialized, Placed };
  Kind kind = Replicated;
  /// Operators on the longest way from an argument (placed), or from the
  /// constant (rematerialized).
  unsigned depth = 0;
  /// The value can be a partial sum.
  bool pending = false;
  /// Its operator has no strategy but to make all of it on every device: what
  /// follows it would be computed whole as well, while slices of it are free.
  bool isWhole = false;
};

class Merging {
public:
  LogicalResult run(func::FuncOp function) {
    step = [function, total = std::optional<TotalWork>()]() mutable {
      // Takes as long as merging itself, and most functions need it not.
      if (!total) {
        total = getTotalWork(function);
      }
      return *total;
    };
    for (Value argument : function.getArguments()) {
      states[argument] = getPlaced(argument, 0);
    }
    return visit(function.getBody().front());
  }

private:
  static ValueState getPlaced(Value value, unsigned depth,
                              bool pending = false) {
    if (isTiny(value.getType()) && !pending) {
      return {ValueState::Replicated, depth, false};
    }
    return {ValueState::Placed, depth, pending};
  }

  void setRole(Operation *op, StringRef role) {
    op->setAttr(kRoleAttrName, StringAttr::get(op->getContext(), role));
  }

  LogicalResult visit(Block &block) {
    // Operators are inserted while walking, always before the current one.
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (failed(visit(&op))) {
        return failure();
      }
    }
    return success();
  }

  LogicalResult visit(Operation *op) {
    if (op->hasTrait<OpTrait::IsTerminator>()) {
      resolveShared(op);
      return success();
    }
    resolveCaptures(op);
    if (auto dataFlow = dyn_cast<DataFlowOpInterface>(op)) {
      return visitRegions(dataFlow);
    }
    if (isa<stablehlo::OptimizationBarrierOp>(op) && op->getNumOperands() > 1) {
      return splitBarrier(op);
    }
    if (auto callback = dyn_cast<CallbackOp>(op)) {
      remarkCallback(callback);
      return replicate(op);
    }
    if (isa<ManualOp>(op)) {
      resolveAll(op);
      return lead(op, ShardingRule());
    }
    std::optional<ShardingRule> rule = getShardingRule(op);
    if (isa<AccumulateOp>(op) && states[op->getOperand(0)].pending &&
        op->getOperand(0).hasOneUse()) {
      return follow(op, *rule, 0);
    }
    bool allTiny = llvm::all_of(op->getOperandTypes(), isTiny) &&
                   llvm::all_of(op->getResultTypes(), isTiny);
    if (!rule || allTiny) {
      if (!rule && !allTiny) {
        remarkUnknown(op, step);
      }
      return replicate(op);
    }
    if (failed(rule->verify(op))) {
      return failure();
    }
    switch (getOperatorRole(op)) {
    case OperatorRole::Rematerialized:
      return visitRematerialized(op, *rule);
    case OperatorRole::Follower:
      return visitFollower(op, *rule);
    case OperatorRole::Leader:
      return lead(op, *rule);
    }
    llvm_unreachable("unknown role");
  }

  LogicalResult visitRegions(DataFlowOpInterface op) {
    if (failed(verifyDataFlow(op))) {
      return failure();
    }
    resolveShared(op);
    writeTripCount(op);
    unsigned depth = getDepth(op);
    DataFlowEdges edges(op);
    llvm::MapVector<int64_t, OpOperand *> sums = findSums(op, edges);
    auto setState = [&](Value value, unsigned valueDepth) {
      std::optional<unsigned> edge = edges.find(value);
      bool isPlaced = edge && !isTinyEdge(op, edges[*edge]);
      states[value] = {isPlaced ? ValueState::Placed : ValueState::Replicated,
                       valueDepth, edge && sums.contains(*edge)};
    };
    for (Region &region : op->getRegions()) {
      for (Block &block : region) {
        for (BlockArgument argument : block.getArguments()) {
          setState(argument, depth);
        }
        if (failed(visit(block))) {
          return failure();
        }
      }
    }
    // What is added may have turned out to be whole.
    sums.remove_if(
        [&](const auto &sum) { return !states[sum.second->get()].pending; });
    op->removeAttr(kPartialEdgesAttrName);
    if (!sums.empty()) {
      SmallVector<int64_t> numbers(llvm::make_first_range(sums));
      op->setAttr(kPartialEdgesAttrName,
                  DenseI64ArrayAttr::get(op->getContext(), numbers));
    }
    for (Value result : op->getResults()) {
      setState(result, depth + 1);
    }
    return success();
  }

  /// The edges that may carry a partial sum, and what the body returns on them.
  llvm::MapVector<int64_t, OpOperand *> findSums(DataFlowOpInterface op,
                                                 const DataFlowEdges &edges) {
    llvm::MapVector<int64_t, OpOperand *> sums;
    for (auto [number, edge] : llvm::enumerate(edges)) {
      OpOperand *returned = getReturnedSum(op, edge);
      bool beginsPartial = llvm::all_of(edge.sources, [&](OpOperand *source) {
        Value value = source->get();
        return source == returned || isZero(value) ||
               (states[value].pending && value.hasOneUse());
      });
      if (returned && !isTinyEdge(op, edge) && beginsPartial) {
        sums[static_cast<int64_t>(number)] = returned;
      }
    }
    return sums;
  }

  /// Rewriting may hide what the count follows from: it is written down.
  static void writeTripCount(DataFlowOpInterface op) {
    std::optional<double> runs = op.getRegionRuns();
    auto hint = op->getAttrOfType<IntegerAttr>(kTripCountAttrName);
    if (!runs && hint) {
      op->emitRemark() << "trip count of this loop is not known; its costs "
                          "are counted "
                       << hint.getInt() << " times, as the hint says";
    } else if (!runs) {
      op->emitRemark() << "trip count of this loop is not known; its costs "
                          "are counted once";
    } else if (*runs == std::floor(*runs)) {
      op->setAttr(kTripCountAttrName,
                  IntegerAttr::get(IntegerType::get(op->getContext(), 64),
                                   static_cast<int64_t>(*runs)));
    }
  }

  /// Values that wait for each other need no sharding in common.
  ///
  /// before: %2:2 = optimization_barrier %0, %1
  /// after:  %2 = optimization_barrier %0 {alpa.barrier = 0}
  ///         %3 = optimization_barrier %1 {alpa.barrier = 0}
  LogicalResult splitBarrier(Operation *op) {
    OpBuilder builder(op);
    Attribute group =
        IntegerAttr::get(IntegerType::get(op->getContext(), 64), numBarriers++);
    for (auto [operand, result] :
         llvm::zip(op->getOperands(), op->getResults())) {
      auto part = stablehlo::OptimizationBarrierOp::create(
          builder, op->getLoc(), operand.getType(), operand);
      part->setDiscardableAttrs(op->getDiscardableAttrDictionary());
      part->setAttr(kBarrierAttrName, group);
      // It names the other values as well.
      part->removeAttr(kRuleAttrName);
      result.replaceAllUsesWith(part->getResult(0));
      if (failed(visit(part))) {
        return failure();
      }
    }
    op->erase();
    return success();
  }

  LogicalResult replicate(Operation *op) {
    resolveShared(op);
    setRole(op, kReplicatedRole);
    for (Value result : op->getResults()) {
      states[result] = {ValueState::Replicated, getDepth(op), false};
    }
    return success();
  }

  LogicalResult visitRematerialized(Operation *op, const ShardingRule &rule) {
    bool isSplittable = llvm::all_of(rule.factors, [](const Factor &factor) {
      return factor.size == 1 || factor.kind != FactorKind::Replicated;
    });
    if (!isSplittable || isTiny(op->getResult(0).getType())) {
      return op->getNumOperands() == 0 || isTiny(op->getOperand(0).getType())
                 ? replicate(op)
                 : lead(op, rule);
    }
    resolveAll(op);
    setRole(op, kRematerializedRole);
    unsigned chain = 0;
    for (Value operand : op->getOperands()) {
      const ValueState &state = states[operand];
      chain = std::max(chain, state.kind == ValueState::Rematerialized
                                  ? state.depth + 1
                                  : 0);
    }
    for (Value result : op->getResults()) {
      states[result] = {ValueState::Rematerialized, chain, false};
    }
    return success();
  }

  /// Whether devices that split a loop have to hear of each other.
  static bool exchanges(const ShardingRule &rule) {
    return llvm::any_of(rule.factors, std::mem_fn(&Factor::hasExchange));
  }

  /// Cheap operators on constants, iotas and their like are made again too.
  bool canRematerialize(Operation *op, const ShardingRule &rule) {
    if (op->getNumResults() != 1 || op->getNumRegions() != 0 ||
        isTiny(op->getResult(0).getType()) ||
        !coversRule(rule, rule.results.front()) || exchanges(rule)) {
      return false;
    }
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      const ValueState &state = states[operand];
      return (state.kind == ValueState::Rematerialized &&
              state.depth < kMaxRematerializedChain && isClosed(operand)) ||
             state.kind == ValueState::Replicated;
    });
  }

  /// True if the value is made from constants and replicated values alone.
  bool isClosed(Value value) {
    Operation *op = value.getDefiningOp();
    if (!op || states[value].kind != ValueState::Rematerialized) {
      return states[value].kind == ValueState::Replicated;
    }
    return llvm::all_of(op->getOperands(),
                        [&](Value operand) { return isClosed(operand); });
  }

  /// XLA, too, takes a sum with zero for its other summand.
  ///
  /// before: %1 = add %0, %zero        after: use %0
  ///         use %1
  static Value findOtherSummand(Operation *op) {
    if (!isa<stablehlo::AddOp>(op)) {
      return Value();
    }
    for (unsigned index : {0, 1}) {
      Value other = op->getOperand(1 - index);
      if (isZero(op->getOperand(index)) &&
          other.getType() == op->getResult(0).getType() &&
          !leavesPhase(op, other)) {
        return other;
      }
    }
    return Value();
  }

  /// Whether an operator says in which phase of a pipeline a stage returns its
  /// result, and one of its operands does not.
  static bool leavesPhase(Operation *op, Value operand) {
    bool isReturned =
        llvm::any_of(op->getResult(0).getUsers(), [](Operation *user) {
          return user->hasTrait<OpTrait::IsTerminator>();
        });
    Operation *maker = operand.getDefiningOp();
    return isReturned && getPhase(op) >= 0 &&
           (!maker || getPhase(maker) != getPhase(op) ||
            runsOnce(maker) != runsOnce(op));
  }

  LogicalResult visitFollower(Operation *op, const ShardingRule &rule) {
    if (Value other = findOtherSummand(op)) {
      op->getResult(0).replaceAllUsesWith(other);
      op->erase();
      return success();
    }
    if (canRematerialize(op, rule)) {
      setRole(op, kRematerializedRole);
      unsigned chain = 0;
      for (Value operand : op->getOperands()) {
        chain = std::max(chain, states[operand].depth + 1);
      }
      states[op->getResult(0)] = {ValueState::Rematerialized, chain, false};
      return success();
    }
    SmallVector<unsigned> pending;
    bool onlyPendingPlaced = true;
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      const ValueState &state = states[operand];
      if (state.pending) {
        pending.push_back(index);
      } else if (state.kind == ValueState::Placed && !state.isWhole) {
        onlyPendingPlaced = false;
      }
    }
    // A loop's sum to which something whole is added is whole in every turn.
    if (pending.size() == 1 && isa<stablehlo::AddOp>(op) &&
        isa<BlockArgument>(op->getOperand(pending.front()))) {
      states[op->getOperand(pending.front())].pending = false;
      pending.clear();
    }
    if (!pending.empty()) {
      bool unshared = llvm::all_of(pending, [&](unsigned index) {
        return op->getOperand(index).hasOneUse();
      });
      // add(a, b) of two sums is a sum over the same axes.
      if (unshared && pending.size() > 1 && isLinearIn(rule, pending)) {
        return lead(op, rule);
      }
      if (unshared && pending.size() == 1 && onlyPendingPlaced &&
          findLinearSet(rule, pending.front()) >= 0 &&
          coversRule(rule, rule.operands[pending.front()])) {
        return follow(op, rule, pending.front());
      }
      resolveAll(op);
    }
    int deepest = -1;
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      const ValueState &state = states[operand];
      if (state.kind == ValueState::Placed && !state.isWhole &&
          coversRule(rule, rule.operands[index]) &&
          (deepest < 0 ||
           state.depth > states[op->getOperand(deepest)].depth)) {
        deepest = static_cast<int>(index);
      }
    }
    return deepest < 0 ? lead(op, rule)
                       : follow(op, rule, static_cast<unsigned>(deepest));
  }

  LogicalResult follow(Operation *op, const ShardingRule &rule,
                       unsigned operand) {
    setRole(op, kFollowerRole);
    op->setAttr(
        kFollowsAttrName,
        IntegerAttr::get(IntegerType::get(op->getContext(), 64), operand));
    bool pending = states[op->getOperand(operand)].pending ||
                   (hasSum(rule) && delaysReduction(op));
    setResults(op, pending);
    return success();
  }

  LogicalResult lead(Operation *op, const ShardingRule &rule) {
    resolveShared(op);
    if (isProduct(rule)) {
      for (OpOperand &operand : op->getOpOperands()) {
        shareReshard(operand);
      }
    }
    setRole(op, kLeaderRole);
    bool isLinear =
        !getLinearSets(rule, Shares::OfDevices, [&](unsigned index) {
           return states[op->getOperand(index)].pending;
         }).empty();
    setResults(op, hasSum(rule) || isLinear);
    // Of an operator without loops the strategies come from elsewhere; one that
    // is linear in a partial sum may leave its result partial.
    if (!rule.factors.empty() && rule.isReplicated() && !isLinear) {
      remarkWhole(op, rule, step);
      for (Value result : op->getResults()) {
        states[result].isWhole = true;
      }
    }
    return success();
  }

  /// Whether shares of exactly these operands make shares of the result.
  static bool isLinearIn(const ShardingRule &rule,
                         ArrayRef<unsigned> operands) {
    return llvm::any_of(
        getLinearSets(rule, Shares::OfDevices, [](unsigned) { return true; }),
        [&](unsigned set) {
          return ArrayRef<unsigned>(rule.linearOperands[set]) == operands;
        });
  }

  static bool hasSum(const ShardingRule &rule) {
    return llvm::any_of(rule.factors, [](const Factor &factor) {
      return factor.size > 1 && factor.kind == FactorKind::Reduction &&
             factor.reduction == ReductionKind::Sum;
    });
  }

  void setResults(Operation *op, bool pending) {
    unsigned depth = getDepth(op) + 1;
    for (Value result : op->getResults()) {
      states[result] = {ValueState::Placed, depth, pending};
    }
  }

  unsigned getDepth(Operation *op) {
    unsigned depth = 0;
    for (Value operand : op->getOperands()) {
      if (states[operand].kind == ValueState::Placed) {
        depth = std::max(depth, states[operand].depth);
      }
    }
    return depth;
  }

  /// A partial sum with several users is resolved once for all of them.
  void resolveShared(Operation *op) {
    for (Value operand : op->getOperands()) {
      if (states[operand].pending && !operand.hasOneUse()) {
        resolve(operand);
      }
    }
  }

  /// Several products that read a value share what it is resharded to.
  ///
  /// before: %1 = dot(%0, %a)         after: %x = alpa.resolve %0
  ///         %2 = dot(%0, %b)                %1 = dot(%x, %a)
  ///                                         %2 = dot(%x, %b)
  void shareReshard(OpOperand &operand) {
    Value value = operand.get();
    Operation *op = operand.getOwner();
    if (states[value].kind != ValueState::Placed || states[value].pending ||
        value.getDefiningOp<ResolveOp>()) {
      return;
    }
    SmallVector<OpOperand *> uses = findUsesByProducts(operand);
    if (uses.empty()) {
      return;
    }
    OpBuilder builder(op);
    auto shared = ResolveOp::create(builder, op->getLoc(), value);
    copyTime(op, shared);
    setRole(shared, kLeaderRole);
    states[shared.getResult()] =
        getPlaced(shared.getResult(), states[value].depth + 1);
    for (OpOperand *use : uses) {
      use->set(shared.getResult());
    }
  }

  /// What a region takes from outside and is not planned itself is the sum.
  void resolveCaptures(Operation *op) {
    SmallVector<Value> captured;
    forEachCapture(op, [&](OpOperand &operand) {
      if (states[operand.get()].pending &&
          !llvm::is_contained(captured, operand.get())) {
        captured.push_back(operand.get());
      }
    });
    llvm::for_each(captured, [&](Value value) { resolve(value); });
  }

  void resolveAll(Operation *op) {
    for (Value operand : op->getOperands()) {
      if (states[operand].pending) {
        resolve(operand);
      }
    }
  }

  /// The sum before it was widened, which is half as large.
  Value findNarrow(Value value) {
    auto convert = value.getDefiningOp<stablehlo::ConvertOp>();
    bool isWidened = convert && states[convert.getOperand()].pending &&
                     convert.getOperand().hasOneUse() &&
                     getTensorBytes(convert.getOperand().getType()) <
                         getTensorBytes(convert.getType());
    return isWidened ? convert.getOperand() : Value();
  }

  /// before: %1 = dot(...)            after: %1 = dot(...)
  ///         use %1                          %2 = alpa.resolve %1
  ///                                         use %2
  ///
  /// before: %1 = dot(...) : bf16     after: %1 = dot(...) : bf16
  ///         %2 = convert %1 : f32           %2 = alpa.resolve %1 : bf16
  ///         use %2                          %3 = convert %2 : f32
  ///                                         use %3
  void resolve(Value value) {
    if (!isa<RankedTensorType>(value.getType())) {
      return;
    }
    if (Value narrow = findNarrow(value)) {
      resolve(narrow);
      states[value] = getPlaced(value, getDepth(value.getDefiningOp()));
      return;
    }
    OpBuilder builder(value.getContext());
    builder.setInsertionPointAfterValue(value);
    auto resolved = ResolveOp::create(builder, value.getLoc(), value);
    value.replaceAllUsesExcept(resolved.getResult(), resolved);
    setRole(resolved, kLeaderRole);
    markOnce(resolved);
    states[resolved.getResult()] =
        getPlaced(resolved.getResult(), states[value].depth + 1);
  }

  /// What is made once per step is resolved once per step; all else right
  /// before the first phase that needs it.
  static void markOnce(ResolveOp resolve) {
    Operation *maker = resolve.getOperand().getDefiningOp();
    if (!maker) {
      return;
    }
    if (isJoin(maker)) {
      setPhase(resolve, kApplyPhase);
    } else if (runsOnce(maker)) {
      copyTime(maker, resolve);
    }
  }

  /// An operator runs when another does.
  static void copyTime(Operation *from, Operation *to) {
    for (StringRef name : {kLayerAttrName, kPhaseAttrName, kOnceAttrName}) {
      if (Attribute attribute = from->getAttr(name)) {
        to->setAttr(name, attribute);
      }
    }
  }

  DenseMap<Value, ValueState> states;
  /// What the function does, to say which part of it stays whole.
  std::function<TotalWork()> step;
  int64_t numBarriers = 0;
};

} // namespace

LogicalResult mergeOperators(func::FuncOp function) {
  return Merging().run(function);
}

} // namespace mlir::alpa
