//===- MicroBatchRules.cpp - What rules make of parts of a batch ----------===//

#include "cpp/analysis/DataFlow.h"
#include "cpp/transforms/LockstepLoops.h"
#include "cpp/transforms/MicroBatchStates.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

namespace {

/// What is made again whole for every micro-batch may have so many operators,
/// and write so many times the bytes of the arguments that it is made from.
/// Heuristics: a mask and its sum, labels and their counts.
constexpr unsigned kMaxLightOperators = 64;
constexpr double kMaxLightGrowth = 8;
constexpr double kMaxLightBytes = 1 << 16;

/// Whether parts of a batch can be cut along a factor: micro-batches are added
/// up, they do not exchange anything else.
bool canCut(const Factor &factor) {
  return !factor.hasExchange() &&
         (factor.kind == FactorKind::Parallel || factor.isSum());
}

/// An operator with more floating-point operations per element than this is
/// worth cutting: a product, no sum. Heuristic.
constexpr double kHeavyFlopsPerElement = 3;

TimeRows getTimeRows(const OperatorRows &rows) {
  TimeRows found;
  for (const ShardingRow &row : rows.operands) {
    found.operands.push_back(row.front());
  }
  for (const ShardingRow &row : rows.results) {
    found.results.push_back(row.front());
  }
  return found;
}

} // namespace

/// FLOPs of operators, those in regions included, that take more than so many
/// for each element that they read or write.
static double getFlops(Operation *op, double leastPerElement) {
  double flops = 0;
  op->walk([&](Operation *inner) {
    std::optional<ShardingRule> rule = getShardingRule(inner);
    if (!rule) {
      return;
    }
    double elements = 0;
    auto count = [&](TypeRange types) {
      for (Type type : types) {
        auto tensor = dyn_cast<RankedTensorType>(type);
        elements += tensor ? static_cast<double>(tensor.getNumElements()) : 0;
      }
    };
    count(inner->getOperandTypes());
    count(inner->getResultTypes());
    flops += rule->flops > leastPerElement * elements ? rule->flops : 0;
  });
  return flops;
}

double getProductFlops(Operation *op) {
  return getFlops(op, kHeavyFlopsPerElement);
}

double getAllFlops(Operation *op) { return getFlops(op, 0); }

/// Whether any row goes on in a loop, or in which turn it is: each micro-batch
/// asks its own rows.
bool MicroBatchStates::visitLockstep(Operation *op) {
  if (!isLockstepReduction(op)) {
    return false;
  }
  TimeEntry dim = getState(op->getOperand(0));
  if (dim >= 0) {
    chosen[op] = TimeRows{{dim, kReplicated}, {kReplicated}};
  }
  return dim >= 0;
}

bool MicroBatchStates::visitByRule(Operation *op) {
  if (visitLockstep(op)) {
    return true;
  }
  bool seesWhole = true;
  forEachCapture(op, [&](OpOperand &operand) {
    seesWhole &= getState(operand.get()) == kReplicated;
  });
  if (!seesWhole) {
    return false;
  }
  std::optional<Choice> best = choose(op);
  // Of summands, as of rows that are looked up, less can be made.
  bool isCutBehind = (!best || best->isSummand) && canCutMade(op);
  if (isCutBehind || (!best && canBeMadeWhole(op))) {
    // The number of rows that count: every micro-batch makes it for itself.
    best.emplace();
    best->rows.operands.assign(op->getNumOperands(), kReplicated);
    best->rows.results.assign(op->getNumResults(), kReplicated);
  }
  if (!best) {
    return false;
  }
  for (auto [result, entry] : llvm::zip(op->getResults(), best->rows.results)) {
    setState(result, isCutBehind ? TimeEntry(0) : entry);
  }
  chosen[op] = std::move(best->rows);
  return true;
}

bool MicroBatchStates::canBeMadeWhole(Operation *op) const {
  return isClonable(op) && llvm::all_of(op->getOperands(), [&](Value v) {
           return getCost(v, kReplicated).has_value();
         });
}

/// Whether every micro-batch makes all of a result, and each use takes a part.
bool MicroBatchStates::canCutMade(Operation *op) const {
  return cutsMade && op->getParentOp() == function && canBeMadeWhole(op) &&
         getProductFlops(op) == 0 &&
         llvm::all_of(op->getResultTypes(), [&](Type type) {
           auto tensor = dyn_cast<RankedTensorType>(type);
           return tensor && tensor.getRank() > 0 && tensor.getDimSize(0) > 0 &&
                  tensor.getDimSize(0) % numMicroBatches == 0;
         });
}

std::optional<MicroBatchStates::Choice>
MicroBatchStates::choose(Operation *op) {
  std::optional<ShardingRule> found = getShardingRule(op);
  if (!found) {
    return std::nullopt;
  }
  const ShardingRule &rule = *found;
  SmallVector<unsigned> linearSets =
      getLinearSets(rule, Shares::OfMicroBatches, [&](unsigned operand) {
        return getPartialCost(op->getOperand(operand), op).has_value();
      });
  std::optional<Choice> best;
  int64_t mesh[] = {numMicroBatches};
  for (FactorRow &row : enumerateFactorRows(rule, mesh, linearSets)) {
    int entry = row.front();
    if (entry == kNoFactor || (entry >= 0 && !canCut(rule.factors[entry]))) {
      continue;
    }
    std::optional<OperatorRows> rows = getOperatorRows(rule, row, mesh);
    if (!rows) {
      continue;
    }
    Choice choice{getTimeRows(*rows)};
    auto isOwn = [&](auto pair) {
      auto [operand, needed] = pair;
      TimeEntry state = getState(operand);
      return state != kReplicated && state == needed;
    };
    auto operands = llvm::zip(op->getOperands(), choice.rows.operands);
    if (llvm::none_of(operands, isOwn)) {
      continue;
    }
    // A part goes further than a summand, which most operators wait for.
    choice.isSummand = llvm::is_contained(choice.rows.results, kPartial);
    bool isPossible = llvm::all_of(operands, [&](auto pair) {
      auto [operand, needed] = pair;
      std::optional<double> cost = needed == kPartial
                                       ? getPartialCost(operand, op)
                                       : getCost(operand, needed);
      choice.cost += cost.value_or(0);
      return cost.has_value();
    });
    if (isPossible && (!best || choice.getRank() < best->getRank())) {
      best = std::move(choice);
    }
  }
  return best;
}

/// Bytes that are made again so that a value is there as needed; none if it
/// cannot be.
std::optional<double> MicroBatchStates::getCost(Value value,
                                                TimeEntry needed) const {
  TimeEntry state = getState(value);
  if (state == needed || (state == kReplicated && needed >= 0)) {
    return 0;
  }
  // Other parts than there are come from the whole, too.
  if (needed != kPartial && isLight(value)) {
    return 1 + getTensorBytes(value.getType());
  }
  return std::nullopt;
}

/// A value that is the same for all micro-batches is a summand of the first.
/// Outside of loops an operator waits for the sum instead.
std::optional<double> MicroBatchStates::getPartialCost(Value value,
                                                       Operation *user) const {
  TimeEntry state = getState(value);
  bool isNested = user->getParentOp() != function;
  if (state == kPartial || (state == kReplicated && isZero(value))) {
    return 0;
  }
  return state == kReplicated && isNested ? std::optional(1.0) : std::nullopt;
}

/// Whether an operator makes running totals, which a tree of windows takes
/// little more work for than a sum.
static bool makesRunningTotals(Operation *op) {
  std::optional<ShardingRule> rule = getShardingRule(op);
  return isa<stablehlo::ReduceWindowOp>(op) && rule &&
         llvm::any_of(rule->factors,
                      [](const Factor &factor) { return factor.isOrdered(); });
}

/// True if the whole of a value is cheap to make from arguments.
bool MicroBatchStates::isLight(Value value) const {
  func::FuncOp step = function;
  llvm::DenseSet<Value> seen;
  SmallVector<Value> work = {value};
  unsigned numOperators = 0;
  double written = 0, read = 0;
  while (!work.empty()) {
    Value next = work.pop_back_val();
    TimeEntry state = getState(next);
    if (state == kReplicated || !seen.insert(next).second) {
      continue;
    }
    Operation *maker = next.getDefiningOp();
    if (state == kAfter ||
        (!maker && next.getParentRegion() != &step.getBody())) {
      return false;
    }
    if (!maker) {
      read += getTensorBytes(next.getType());
      continue;
    }
    if (isa<stablehlo::OptimizationBarrierOp>(maker)) {
      // Values are handed on one by one, light ones beside activations: what a
      // layer computes again begins so.
      unsigned number = cast<OpResult>(next).getResultNumber();
      work.push_back(maker->getOperand(number));
      continue;
    }
    // Whether it is a product takes longest to say.
    if (!isClonable(maker) || isa<DataFlowOpInterface>(maker) ||
        ++numOperators > kMaxLightOperators ||
        (getProductFlops(maker) > 0 && !makesRunningTotals(maker))) {
      return false;
    }
    written += getTensorBytes(next.getType());
    forEachUsedValue(maker, [&](Value used) { work.push_back(used); });
  }
  return written <= kMaxLightGrowth * read + kMaxLightBytes;
}

std::optional<TimeRows> MicroBatchStates::getRowsFor(OpResult result,
                                                     TimeEntry entry) const {
  Operation *op = result.getOwner();
  std::optional<ShardingRule> found = getShardingRule(op);
  if (!found) {
    return std::nullopt;
  }
  const ShardingRule &rule = *found;
  int64_t mesh[] = {numMicroBatches};
  int8_t row[] = {entry};
  // Of an operand, or of none: zero is a summand as it is.
  int set = -1;
  if (entry == kPartial && op->getNumOperands() == 1) {
    set = findLinearSet(rule, 0, Shares::OfMicroBatches);
  } else if (entry == kPartial && op->getNumOperands() == 0 &&
             !rule.linearOperands.empty()) {
    set = 0;
  }
  FactorRow factorRow =
      getFactorRow(rule, rule.results[result.getResultNumber()], row, mesh,
                   set < 0 ? kNoFactor : kLinearSet - set);
  int split = factorRow.front();
  if (split == kNoFactor || (split >= 0 && !canCut(rule.factors[split]))) {
    return std::nullopt;
  }
  std::optional<OperatorRows> shardings =
      getOperatorRows(rule, factorRow, mesh);
  if (!shardings ||
      shardings->results[result.getResultNumber()].front() != entry) {
    return std::nullopt;
  }
  TimeRows rows = getTimeRows(*shardings);
  for (auto [operand, needed] : llvm::zip(op->getOperands(), rows.operands)) {
    if (needed == kPartial && !isZero(operand)) {
      return std::nullopt;
    }
  }
  return rows;
}

} // namespace mlir::alpa
