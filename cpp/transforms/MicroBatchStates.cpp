//===- MicroBatchStates.cpp - What one micro-batch has of a value ---------===//

#include "cpp/transforms/MicroBatchStates.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/StrategyGraph.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

namespace {

/// The scope that the front end opens around gradients.
constexpr StringLiteral kGradientScope = "alpa_gradients";

/// What is made again whole for every micro-batch may have so many operators,
/// and write so many times the bytes of the arguments that it is made from.
/// Heuristics: a mask and its sum, labels and their counts.
constexpr unsigned kMaxLightOperators = 64;
constexpr double kMaxLightGrowth = 8;
constexpr double kMaxLightBytes = 1 << 16;

/// An operator with more floating-point operations per element than this is
/// worth cutting: a product, no sum. Heuristic.
constexpr double kHeavyFlopsPerElement = 3;

/// Floating-point operations of products, in regions included.
double getFlops(Operation *op) {
  double flops = 0;
  op->walk([&](Operation *inner) {
    auto rule = dyn_cast<ShardingRuleOpInterface>(inner);
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
    double own = rule.getShardingRule().flops;
    flops += own > kHeavyFlopsPerElement * elements ? own : 0;
  });
  return flops;
}

bool isControlFlow(Operation *op) {
  return isa<stablehlo::WhileOp, stablehlo::CaseOp, stablehlo::IfOp>(op);
}

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

/// What two ways to a value have in common; none if nothing.
std::optional<TimeEntry> merge(TimeEntry left, TimeEntry right) {
  if (left == right || right == kReplicated) {
    return left;
  }
  return left == kReplicated ? std::optional(right) : std::nullopt;
}

} // namespace

bool isGradientBarrier(Operation *op) {
  return isa<stablehlo::OptimizationBarrierOp>(op) &&
         StringRef(getScope(op->getLoc())).contains(kGradientScope);
}

bool isZero(Value value) {
  Operation *maker = value.getDefiningOp();
  if (!maker) {
    return false;
  }
  if (auto constant = dyn_cast<stablehlo::ConstantOp>(maker)) {
    auto number = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!number || !number.isSplat()) {
      return false;
    }
    Type element = number.getElementType();
    if (isa<FloatType>(element)) {
      llvm::APFloat zero = number.getSplatValue<llvm::APFloat>();
      return zero.isZero() && !zero.isNegative();
    }
    return isa<IntegerType>(element) &&
           number.getSplatValue<llvm::APInt>().isZero();
  }
  return isa<stablehlo::BroadcastInDimOp, stablehlo::ReshapeOp>(maker) &&
         isZero(maker->getOperand(0));
}

MicroBatchStates::MicroBatchStates(func::FuncOp function,
                                   int64_t numMicroBatches,
                                   const llvm::DenseSet<unsigned> &split)
    : function(function), numMicroBatches(numMicroBatches) {
  Block &block = function.getBody().front();
  for (Operation &op : block) {
    if (isGradientBarrier(&op)) {
      findAncestors(&op);
    }
  }
  for (unsigned argument : split) {
    setState(block.getArgument(argument), 0);
  }
  visit(block);
  for (auto &[op, rows] : chosen) {
    auto isOwn = [](TimeEntry entry) { return entry != kReplicated; };
    if (op->getNumRegions() == 0 || !isControlFlow(op)) {
      splitFlops += getFlops(op);
    }
    for (Value result : op->getResults()) {
      makesParts |= getState(result) >= 0;
      splitBytes +=
          isOwn(getState(result)) ? getTensorBytes(result.getType()) : 0;
    }
    for (auto [operand, needed] : llvm::zip(op->getOperands(), rows.operands)) {
      TimeEntry state = getState(operand);
      bool isSliced = state == kReplicated && needed >= 0 &&
                      isa<BlockArgument>(operand) &&
                      operand.getParentRegion() == &function.getBody();
      bool isMadeWhole = isOwn(state) && needed == kReplicated;
      if ((isSliced || isMadeWhole) &&
          countedArguments.insert(operand).second) {
        wholeBytes += getTensorBytes(operand.getType());
      }
    }
  }
}

void MicroBatchStates::findAncestors(Operation *barrier) {
  SmallVector<Operation *> work = {barrier};
  while (!work.empty()) {
    forEachUsedValue(work.pop_back_val(), [&](Value value) {
      Operation *maker = value.getDefiningOp();
      if (maker && ancestors.insert(maker).second) {
        work.push_back(maker);
      }
    });
  }
}

TimeEntry MicroBatchStates::getState(Value value) const {
  auto state = states.find(value);
  return state == states.end() ? kReplicated : state->second;
}

void MicroBatchStates::setState(Value value, TimeEntry entry) {
  if (entry == kReplicated) {
    states.erase(value);
  } else {
    states[value] = entry;
  }
}

const TimeRows *MicroBatchStates::getRows(Operation *op) const {
  auto rows = chosen.find(op);
  return rows == chosen.end() ? nullptr : &rows->second;
}

bool MicroBatchStates::hasUse(Operation *op,
                              function_ref<bool(TimeEntry)> predicate) const {
  bool found = false;
  forEachUsedValue(op,
                   [&](Value value) { found |= predicate(getState(value)); });
  return found;
}

bool MicroBatchStates::setAfter(Operation *op) {
  Operation *cause = op;
  bool joins = false;
  forEachUsedValue(op, [&](Value value) {
    joins |= getState(value) >= 0;
    Operation *maker = value.getDefiningOp();
    if (!maker || getState(value) != kAfter || isGradientBarrier(maker)) {
      return;
    }
    joins |= joining.contains(maker);
    if (Operation *before = getCause(maker); before && cause == op) {
      cause = before;
    }
  });
  causes[op] = cause;
  if (joins && !isGradientBarrier(op)) {
    joining.insert(op);
  }
  for (Value result : op->getResults()) {
    setState(result, kAfter);
  }
  bool isInside = ancestors.contains(op) || joining.contains(op);
  if (!refused && isInside && getFlops(op) > 0) {
    refused = op;
  }
  return false;
}

bool MicroBatchStates::visit(Block &block) {
  bool isDone = true;
  for (Operation &op : block.without_terminator()) {
    isDone &= visit(&op);
  }
  return isDone;
}

bool MicroBatchStates::visit(Operation *op) {
  // What is felt outside of the program happens once per step, on all rows.
  if (isGradientBarrier(op) || !isClonable(op)) {
    return setAfter(op);
  }
  if (hasUse(op, [](TimeEntry entry) { return entry == kAfter; })) {
    return setAfter(op);
  }
  if (!hasUse(op, [](TimeEntry entry) { return entry != kReplicated; })) {
    return true;
  }
  if (isa<stablehlo::WhileOp>(op)) {
    SmallVector<TimeEntry> least(op->getNumOperands(), kReplicated);
    return visitLoop(op, least) || setAfter(op);
  }
  if (isControlFlow(op)) {
    return visitBranches(op) || setAfter(op);
  }
  if (isa<stablehlo::OptimizationBarrierOp>(op)) {
    return visitBarrier(op);
  }
  return visitByRule(op) || setAfter(op);
}

bool MicroBatchStates::visitBarrier(Operation *op) {
  TimeRows rows;
  for (auto [operand, result] :
       llvm::zip(op->getOperands(), op->getResults())) {
    rows.operands.push_back(getState(operand));
    rows.results.push_back(getState(operand));
    setState(result, getState(operand));
  }
  chosen[op] = rows;
  return true;
}

//===----------------------------------------------------------------------===//
// Operators with a rule
//===----------------------------------------------------------------------===//

bool MicroBatchStates::visitByRule(Operation *op) {
  std::optional<Choice> best = choose(op);
  if (!best && isClonable(op) && llvm::all_of(op->getOperands(), [&](Value v) {
        return getCost(v, kReplicated).has_value();
      })) {
    // The number of rows that count: every micro-batch makes it for itself.
    best.emplace();
    best->rows.operands.assign(op->getNumOperands(), kReplicated);
    best->rows.results.assign(op->getNumResults(), kReplicated);
  }
  if (!best) {
    return false;
  }
  for (auto [result, entry] : llvm::zip(op->getResults(), best->rows.results)) {
    setState(result, entry);
  }
  chosen[op] = std::move(best->rows);
  return true;
}

std::optional<MicroBatchStates::Choice>
MicroBatchStates::choose(Operation *op) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface) {
    return std::nullopt;
  }
  ShardingRule rule = interface.getShardingRule();
  SmallVector<unsigned> linearSets;
  for (auto [index, set] : llvm::enumerate(rule.linearOperands)) {
    if (llvm::all_of(set, [&](unsigned operand) {
          Value value = op->getOperand(operand);
          return getPartialCost(value, op).has_value();
        })) {
      linearSets.push_back(index);
    }
  }
  std::optional<Choice> best;
  int64_t mesh[] = {numMicroBatches};
  for (FactorRow &row : enumerateFactorRows(rule, mesh, linearSets)) {
    int entry = row.front();
    if (entry == kNoFactor ||
        (entry >= 0 && rule.factors[entry].kind == FactorKind::Reduction &&
         rule.factors[entry].reduction != ReductionKind::Sum)) {
      continue;
    }
    std::optional<OperatorRows> rows = getOperatorRows(rule, row, mesh);
    if (!rows) {
      continue;
    }
    Choice choice{getTimeRows(*rows)};
    bool isOwn = false, isPossible = true;
    // A part goes further than a summand, which most operators wait for.
    choice.isSummand = llvm::is_contained(choice.rows.results, kPartial);
    for (auto [operand, needed] :
         llvm::zip(op->getOperands(), choice.rows.operands)) {
      TimeEntry state = getState(operand);
      isOwn |= state != kReplicated && state == needed;
      std::optional<double> cost = needed == kPartial
                                       ? getPartialCost(operand, op)
                                       : getCost(operand, needed);
      isPossible &= cost.has_value();
      choice.cost += cost.value_or(0);
    }
    if (isOwn && isPossible && (!best || choice.getRank() < best->getRank())) {
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
  if (needed == kReplicated && isLight(value)) {
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
    if (!isClonable(maker) || isControlFlow(maker) || getFlops(maker) > 0 ||
        ++numOperators > kMaxLightOperators) {
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
  if (entry == kPartial && isa<stablehlo::ConstantOp>(op) && isZero(result)) {
    return TimeRows{{}, {kPartial}};
  }
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface) {
    return std::nullopt;
  }
  ShardingRule rule = interface.getShardingRule();
  int64_t mesh[] = {numMicroBatches};
  int8_t row[] = {entry};
  int set = entry == kPartial && op->getNumOperands() == 1
                ? findLinearSet(rule, 0)
                : -1;
  FactorRow factorRow =
      getFactorRow(rule, rule.results[result.getResultNumber()], row, mesh,
                   set < 0 ? kNoFactor : kLinearSet - set);
  if (factorRow.front() == kNoFactor) {
    return std::nullopt;
  }
  std::optional<OperatorRows> found = getOperatorRows(rule, factorRow, mesh);
  if (!found || found->results[result.getResultNumber()].front() != entry) {
    return std::nullopt;
  }
  TimeRows rows = getTimeRows(*found);
  for (auto [operand, needed] : llvm::zip(op->getOperands(), rows.operands)) {
    if (needed == kPartial && !isZero(operand)) {
      return std::nullopt;
    }
  }
  return rows;
}

//===----------------------------------------------------------------------===//
// Control flow
//===----------------------------------------------------------------------===//

void MicroBatchStates::clear(Region &region) {
  region.walk([&](Operation *op) {
    chosen.erase(op);
    causes.erase(op);
    joining.erase(op);
    for (Value result : op->getResults()) {
      states.erase(result);
    }
  });
}

bool MicroBatchStates::visitRegion(Region &region,
                                   ArrayRef<TimeEntry> arguments) {
  clear(region);
  Block &block = region.front();
  for (auto [argument, entry] : llvm::zip(block.getArguments(), arguments)) {
    setState(argument, entry);
  }
  return visit(block);
}

/// Carried values are what they begin with and what every turn makes of them.
bool MicroBatchStates::visitLoop(Operation *op, ArrayRef<TimeEntry> least) {
  Operation *before = refused;
  SmallVector<TimeEntry> carried;
  for (auto [operand, entry] : llvm::zip(op->getOperands(), least)) {
    std::optional<TimeEntry> both = merge(getState(operand), entry);
    if (!both) {
      return false;
    }
    carried.push_back(*both);
  }
  Region &condition = op->getRegion(0), &body = op->getRegion(1);
  for (bool isStable = false; !isStable;) {
    isStable = true;
    if (!visitRegion(condition, carried) || !visitRegion(body, carried)) {
      refused = before;
      return false;
    }
    Operation *next = body.front().getTerminator();
    for (auto [entry, value] : llvm::zip(carried, next->getOperands())) {
      std::optional<TimeEntry> both = merge(entry, getState(value));
      if (!both) {
        return false;
      }
      isStable &= *both == entry;
      entry = *both;
    }
  }
  // All micro-batches have to take as many turns.
  for (Value value : condition.front().getTerminator()->getOperands()) {
    if (getState(value) != kReplicated) {
      return false;
    }
  }
  TimeRows rows;
  rows.operands.assign(carried.begin(), carried.end());
  rows.results.assign(carried.begin(), carried.end());
  for (auto [result, entry] : llvm::zip(op->getResults(), carried)) {
    setState(result, entry);
  }
  chosen[op] = rows;
  return true;
}

bool MicroBatchStates::splitLoop(Operation *loop, ArrayRef<TimeEntry> wanted) {
  SmallVector<TimeEntry> least =
      llvm::map_to_vector(wanted, [](TimeEntry entry) {
        return entry == kAfter ? kReplicated : entry;
      });
  bool isSplit = visitLoop(loop, least);
  for (auto [entry, result] : llvm::zip(wanted, loop->getResults())) {
    isSplit = isSplit && (entry == kAfter || entry == getState(result));
  }
  if (!isSplit) {
    for (Region &region : loop->getRegions()) {
      clear(region);
      for (Value argument : region.front().getArguments()) {
        states.erase(argument);
      }
    }
    chosen.erase(loop);
    for (Value result : loop->getResults()) {
      states.erase(result);
    }
  }
  return isSplit;
}

bool MicroBatchStates::visitBranches(Operation *op) {
  Operation *before = refused;
  TimeRows rows;
  for (Value operand : op->getOperands()) {
    if (!getCost(operand, kReplicated)) {
      return false;
    }
    rows.operands.push_back(kReplicated);
  }
  rows.results.assign(op->getNumResults(), kReplicated);
  for (Region &region : op->getRegions()) {
    if (!visitRegion(region, {})) {
      refused = before;
      return false;
    }
    Operation *end = region.front().getTerminator();
    for (auto [entry, value] : llvm::zip(rows.results, end->getOperands())) {
      std::optional<TimeEntry> both = merge(entry, getState(value));
      if (!both) {
        return false;
      }
      entry = *both;
    }
  }
  for (auto [result, entry] : llvm::zip(op->getResults(), rows.results)) {
    setState(result, entry);
  }
  chosen[op] = rows;
  return true;
}

} // namespace mlir::alpa
