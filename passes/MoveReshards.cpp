//===- MoveReshards.cpp - Light operators on parts of their operands ------===//

#include "cpp/analysis/Entry.h"
#include "cpp/analysis/OperatorShardings.h"
#include "cpp/analysis/ReshardPlanner.h"
#include "dialects/alpa/ShardingRule.h"
#include "passes/Passes.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_MOVERESHARDS
#include "passes/Passes.h.inc"

namespace {

/// A light operator with one result, and what it reads and makes.
struct LightOperator {
  Operation *op;
  ShardingRule rule;
};

/// What an operator is to do instead.
struct Change {
  FactorRow factorRow;
  OperatorRows rows;
};

class ReshardMover {
public:
  explicit ReshardMover(MeshAttr mesh)
      : mesh(mesh), numAxes(mesh.getNumAxes()), planner(mesh.getSizes()) {}

  /// Takes a sum, or a slice of what devices have all of, in front of what
  /// makes elements one by one. Reshards there are added to `moved`.
  void moveBefore(ReshardOp reshard, SmallVectorImpl<ReshardOp> &moved) {
    Value made = reshard.getOperand();
    std::optional<LightOperator> light =
        made.hasOneUse() ? getLight(made.getDefiningOp(), reshard->getBlock())
                         : std::nullopt;
    if (!light || !runsWithUsers(light->op, reshard)) {
      return;
    }
    ShardingRow source = getRow(reshard.getSource(), numAxes);
    ShardingRow target = getRow(reshard.getTarget(), numAxes);
    std::optional<unsigned> shares;
    if (isReduction(source, target)) {
      shares = findShares(*light, source);
      if (!shares || !isAsLarge(light->op->getOperand(*shares), made)) {
        return;
      }
    } else if (!isGather(target, source)) {
      return;
    }
    std::optional<Change> change = getChange(*light, target);
    if (!change || !canSlice(*light, *change, shares) ||
        !(shares ? exchangesNoMore(*light, *shares, *change, reshard)
                 : countSlices(*light, *change) <= 1)) {
      return;
    }
    slice(*light, *change, shares, moved);
    if (shares) {
      moved.push_back(makeReshard(light->op->getOperand(*shares),
                                  change->rows.operands[*shares], light->op));
      light->op->setOperand(*shares, moved.back());
    }
    apply(*light, *change);
    reshard.getResult().replaceAllUsesWith(made);
    reshard.erase();
  }

  /// Takes an all-gather behind what is done to its elements, one by one.
  /// Returns the reshard there, null if it stays where it is.
  ReshardOp moveBehind(ReshardOp reshard) {
    ShardingRow source = getRow(reshard.getSource(), numAxes);
    if (!isGather(source, getRow(reshard.getTarget(), numAxes)) ||
        !reshard.getResult().hasOneUse()) {
      return {};
    }
    OpOperand &use = *reshard.getResult().use_begin();
    std::optional<LightOperator> light =
        getLight(use.getOwner(), reshard->getBlock());
    unsigned operand = use.getOperandNumber();
    if (!light || light->rule.operands[operand] != light->rule.results[0] ||
        getTensorBytes(light->op->getResult(0).getType()) >
            getTensorBytes(reshard.getType())) {
      return {};
    }
    Value made = light->op->getResult(0);
    ShardingRow whole = getRow(getSharding(made), numAxes);
    std::optional<Change> change = getChange(*light, source);
    if (whole != getRow(reshard.getTarget(), numAxes) || !change ||
        change->rows.operands[operand] != source ||
        !canSlice(*light, *change, operand)) {
      return {};
    }
    SmallVector<ReshardOp> slices;
    slice(*light, *change, operand, slices);
    light->op->setOperand(operand, reshard.getOperand());
    apply(*light, *change);
    reshard.erase();
    return gatherBehind(light->op, whole);
  }

private:
  /// An operator of the block that is cheap enough to follow others.
  std::optional<LightOperator> getLight(Operation *op, Block *block) {
    if (!op || op->getBlock() != block || op->getNumResults() != 1 ||
        op->getNumRegions() != 0 || isDeviceDependent(op) ||
        !op->hasAttr(kStrategyAttrName) || !op->hasAttr(kOperandsAttrName) ||
        (getOperatorRole(op) != OperatorRole::Follower &&
         !isa<ResolveOp>(op))) {
      return std::nullopt;
    }
    std::optional<ShardingRule> rule = getShardingRule(op);
    bool isPlain = rule && llvm::all_of(rule->factors, [](const Factor &f) {
                     return f.kind == FactorKind::Parallel && !f.isWindowed;
                   });
    return isPlain ? std::optional(LightOperator{op, *rule}) : std::nullopt;
  }

  static bool isReduction(ShardingRowRef source, ShardingRowRef target) {
    return llvm::is_contained(source, kPartial) &&
           !llvm::is_contained(target, kPartial);
  }

  static bool isGather(ShardingRowRef source, ShardingRowRef target) {
    return source != target && !llvm::is_contained(source, kPartial) &&
           llvm::all_of(llvm::zip(source, target), [](const auto &entries) {
             auto [from, to] = entries;
             return to == from || to == kReplicated;
           });
  }

  /// The only operand that has shares where the result has; none if there are
  /// several such.
  std::optional<unsigned> findShares(const LightOperator &light,
                                     ShardingRowRef source) {
    FactorRow row = light.op->getAttrOfType<StrategyAttr>(kStrategyAttrName)
                        .getRow(numAxes);
    std::optional<unsigned> shares;
    for (auto [entry, sharding] : llvm::zip(row, source)) {
      if (sharding != kPartial) {
        continue;
      }
      if (entry > kLinearSet) {
        return std::nullopt;
      }
      ArrayRef<unsigned> set = light.rule.linearOperands[kLinearSet - entry];
      if (set.size() != 1 || (shares && *shares != set.front())) {
        return std::nullopt;
      }
      shares = set.front();
    }
    return shares;
  }

  /// Whether sums of both are rounded alike and move as much.
  static bool isAsLarge(Value before, Value after) {
    auto first = dyn_cast<RankedTensorType>(before.getType());
    auto second = dyn_cast<RankedTensorType>(after.getType());
    return first && second &&
           first.getElementType() == second.getElementType() &&
           first.getNumElements() == second.getNumElements();
  }

  /// Whether an operator runs as often as all that read a reshard.
  static bool runsWithUsers(Operation *op, ReshardOp reshard) {
    return llvm::all_of(reshard->getUsers(), [&](Operation *user) {
      return llvm::all_of(ArrayRef<StringRef>{kPhaseAttrName, kOnceAttrName},
                          [&](StringRef name) {
                            return op->getAttr(name) == user->getAttr(name);
                          });
    });
  }

  /// What the operator does whose result lies so.
  std::optional<Change> getChange(const LightOperator &light,
                                  ShardingRowRef result) {
    FactorRow row = getFactorRow(light.rule, light.rule.results[0], result,
                                 mesh.getSizes(), kNoFactor);
    std::optional<OperatorRows> rows =
        getOperatorRows(light.rule, row, mesh.getSizes());
    if (!rows || ShardingRowRef(rows->results[0]) != result) {
      return std::nullopt;
    }
    return Change{row, *rows};
  }

  /// Whether a sum of the operand moves no more than one of the result.
  bool exchangesNoMore(const LightOperator &light, unsigned shares,
                       const Change &change, ReshardOp reshard) {
    Value summed = light.op->getOperand(shares);
    return getMoved(summed, getRow(getSharding(summed), numAxes),
                    change.rows.operands[shares]) <=
           getMoved(reshard.getOperand(), getRow(reshard.getSource(), numAxes),
                    getRow(reshard.getTarget(), numAxes));
  }

  double getMoved(Value value, ShardingRowRef from, ShardingRowRef to) {
    double moved = 0;
    auto type = cast<RankedTensorType>(value.getType());
    for (const ReshardStep &step : planner.getPlan(type.getShape(), from, to)) {
      moved += planner.getMovedElements(step);
    }
    return moved;
  }

  /// The value of which a gather makes this one, if it makes it from such
  /// parts.
  Value findParts(Value value, ShardingRowRef wanted) {
    auto reshard = value.getDefiningOp<ReshardOp>();
    return reshard && ShardingRowRef(getRow(reshard.getSource(), numAxes)) ==
                          wanted
               ? reshard.getOperand()
               : Value();
  }

  /// Whether devices have what they need of all operands but one.
  bool canSlice(const LightOperator &light, const Change &change,
                std::optional<unsigned> except) {
    for (auto [index, operand] : llvm::enumerate(light.op->getOperands())) {
      ShardingRowRef wanted = change.rows.operands[index];
      ShardingAttr sharding = getSharding(operand);
      if (!sharding || !isa<RankedTensorType>(operand.getType())) {
        return false;
      }
      ShardingRow row = getRow(sharding, numAxes);
      if (index != except && ShardingRowRef(row) != wanted &&
          !findParts(operand, wanted) &&
          (llvm::is_contained(row, kPartial) || !isGather(wanted, row))) {
        return false;
      }
    }
    return true;
  }

  /// The slices in the place of one of the result: each is held in memory.
  int64_t countSlices(const LightOperator &light, const Change &change) {
    return llvm::count_if(
        llvm::enumerate(light.op->getOperands()), [&](auto operand) {
          Value value = operand.value();
          ShardingRowRef wanted = change.rows.operands[operand.index()];
          Operation *op = value.getDefiningOp();
          return ShardingRowRef(getRow(getSharding(value), numAxes)) !=
                     wanted &&
                 !findParts(value, wanted) &&
                 !(op && getOperatorRole(op) == OperatorRole::Rematerialized);
        });
  }

  /// Has the operator take of all operands but one what it needs. Slices that
  /// are made are added to `slices`.
  void slice(const LightOperator &light, const Change &change,
             std::optional<unsigned> except,
             SmallVectorImpl<ReshardOp> &slices) {
    for (auto [index, operand] : llvm::enumerate(light.op->getOperands())) {
      const ShardingRow &wanted = change.rows.operands[index];
      if (index == except || getRow(getSharding(operand), numAxes) == wanted) {
        continue;
      }
      Value parts = findParts(operand, wanted);
      if (!parts) {
        parts = makePart(operand, wanted, light.op);
        if (auto reshard = parts.getDefiningOp<ReshardOp>()) {
          slices.push_back(reshard);
        }
      }
      light.op->setOperand(index, parts);
    }
  }

  /// The part of a whole value. What is written anew wherever it is needed is
  /// written in parts.
  Value makePart(Value whole, const ShardingRow &wanted, Operation *before) {
    Operation *op = whole.getDefiningOp();
    std::optional<ShardingRule> rule =
        op && getOperatorRole(op) == OperatorRole::Rematerialized &&
                op->getNumResults() == 1 && op->hasAttr(kStrategyAttrName)
            ? getShardingRule(op)
            : std::nullopt;
    std::optional<Change> change =
        rule ? getChange({op, *rule}, wanted) : std::nullopt;
    bool isPossible =
        change &&
        llvm::all_of(llvm::zip(op->getOperands(), change->rows.operands),
                     [&](auto operand) {
                       auto [value, row] = operand;
                       return getRow(getSharding(value), numAxes) == row;
                     });
    if (!isPossible) {
      return makeReshard(whole, wanted, before);
    }
    OpBuilder builder(before);
    Operation *part = builder.clone(*op);
    apply({part, *rule}, *change);
    return part->getResult(0);
  }

  ReshardOp makeReshard(Value value, ShardingRowRef wanted, Operation *before) {
    OpBuilder builder(before);
    auto rank = cast<RankedTensorType>(value.getType()).getRank();
    return ReshardOp::create(
        builder, value.getLoc(), value, getSharding(value),
        getShardingAttr(builder.getContext(), wanted, rank));
  }

  static void apply(const LightOperator &light, const Change &change) {
    setShardings(light.op, change.rows);
    setStrategy(light.op, change.factorRow);
  }

  /// Gathers the result for those who need it; null where nobody does.
  ReshardOp gatherBehind(Operation *op, ShardingRowRef whole) {
    Value parts = op->getResult(0);
    ShardingAttr sharding = getSharding(parts);
    for (OpOperand &use : llvm::make_early_inc_range(parts.getUses())) {
      auto reshard = dyn_cast<ReshardOp>(use.getOwner());
      if (reshard && reshard.getTarget() == sharding) {
        reshard.getResult().replaceAllUsesWith(parts);
        reshard.erase();
      }
    }
    SmallVector<OpOperand *> uses;
    for (OpOperand &use : parts.getUses()) {
      // What read the parts from a reshard goes on to do so.
      auto reshard = dyn_cast<ReshardOp>(use.getOwner());
      ShardingAttr wanted =
          reshard ? reshard.getSource() : getOperandSharding(use);
      if (wanted != sharding) {
        uses.push_back(&use);
      }
    }
    if (uses.empty()) {
      return {};
    }
    ReshardOp gathered = makeReshard(parts, whole, op->getNextNode());
    for (OpOperand *use : uses) {
      use->set(gathered);
    }
    return gathered;
  }

  MeshAttr mesh;
  unsigned numAxes;
  ReshardPlanner planner;
};

struct MoveReshards : impl::MoveReshardsBase<MoveReshards> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry)) {
      return signalPassFailure();
    }
    FailureOr<MeshAttr> mesh = getPlannedMesh(getOperation());
    if (failed(mesh)) {
      return signalPassFailure();
    }
    ReshardMover mover(*mesh);
    // From the last one on: what a move takes away stands behind it.
    for (ReshardOp reshard : collect(*entry)) {
      while (reshard && !reshard.getResult().use_empty()) {
        reshard = mover.moveBehind(reshard);
      }
    }
    // Behind gathers there are slices of what else was read.
    SmallVector<ReshardOp> waiting = collect(*entry);
    while (!waiting.empty()) {
      mover.moveBefore(waiting.pop_back_val(), waiting);
    }
    for (ReshardOp reshard : collect(*entry)) {
      if (reshard.getResult().use_empty()) {
        reshard.erase();
      }
    }
  }

private:
  /// All reshards, the last one first.
  static SmallVector<ReshardOp> collect(func::FuncOp entry) {
    SmallVector<ReshardOp> reshards;
    entry.walk([&](ReshardOp reshard) { reshards.push_back(reshard); });
    std::reverse(reshards.begin(), reshards.end());
    return reshards;
  }
};

} // namespace
} // namespace mlir::alpa
