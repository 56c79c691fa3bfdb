//===- LockstepLoops.cpp - Loops that each row leaves by itself -----------===//

#include "cpp/transforms/LockstepLoops.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/transforms/ReadPlaces.h"
#include "cpp/transforms/RowComparison.h"
#include "mlir/IR/Matchers.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::alpa {

/// Whether an operator reduces one tensor to a number by `Combiner`.
template <typename Combiner>
static bool isReduction(stablehlo::ReduceOp reduce) {
  return reduce && reduce.getInputs().size() == 1 &&
         cast<RankedTensorType>(reduce.getType(0)).getRank() == 0 &&
         matchPattern(reduce.getInitValues()[0], m_Constant()) &&
         llvm::hasSingleElement(
             reduce.getBody().front().without_terminator()) &&
         isa<Combiner>(reduce.getBody().front().front());
}

/// Whether a reduction says if any element is true.
static bool isAny(stablehlo::ReduceOp reduce) {
  return isReduction<stablehlo::OrOp>(reduce) &&
         matchPattern(reduce.getInitValues()[0], m_Zero());
}

/// The reduction that a loop goes on by, perhaps with other conditions.
static stablehlo::ReduceOp findAny(Value goesOn) {
  if (auto both = goesOn.getDefiningOp<stablehlo::AndOp>()) {
    stablehlo::ReduceOp left = findAny(both.getLhs());
    return left ? left : findAny(both.getRhs());
  }
  auto reduce = goesOn.getDefiningOp<stablehlo::ReduceOp>();
  return isAny(reduce) ? reduce : nullptr;
}

/// Whether a value is the same number for all rows.
static bool isOneNumber(Value value) {
  value = stripRows(value);
  DenseElementsAttr constant;
  return cast<RankedTensorType>(value.getType()).getRank() == 0 ||
         (matchPattern(value, m_Constant(&constant)) && constant.isSplat());
}

/// Without the broadcasts from rows to what each has more of.
static Value stripSpread(Value value) {
  while (auto spread = value.getDefiningOp<stablehlo::BroadcastInDimOp>()) {
    value = spread.getOperand();
  }
  return value;
}

namespace {

/// What becomes of the values that a loop carries where a row does not go on.
class Carried {
public:
  Carried(stablehlo::WhileOp loop, Value predicate)
      : loop(loop), condition(loop.getCond().front()),
        body(loop.getBody().front()), predicate(predicate),
        regions(condition, ValueRange(body.getArguments())) {}

  /// Whether rows stay as they are, in all that is used behind the loop, and
  /// that they go by.
  bool leaveRows();

  /// Whether a number per row of the body is of all rows that go on the same,
  /// what is more of none: turns are counted.
  bool isCount(Value value);

  /// Whether rows that a value of the body is true of go on, all or none.
  bool isOfTurn(Value value) {
    return isMadeOfCounts(value) && isPartOf(predicate, value);
  }

private:
  Value getMade(unsigned number) {
    return body.getTerminator()->getOperand(number);
  }
  bool leavesRow(unsigned number);
  bool goesOn(Value wants);
  bool stops(Value wants);
  bool isMask(Value value);
  bool followsPredicate(BlockArgument mask, Value next);
  Value getNext(unsigned number, BlockArgument mask);
  bool isMadeOfCounts(Value value);
  bool isPartOf(Value whole, Value part);
  bool dependsOn(const llvm::SmallDenseSet<unsigned> &numbers);

  stablehlo::WhileOp loop;
  Block &condition, &body;
  Value predicate;
  RowComparison regions;
  DenseMap<Value, bool> masks;
};

} // namespace

bool Carried::leaveRows() {
  llvm::SmallDenseSet<unsigned> free;
  for (unsigned number = 0; number < loop.getNumResults(); ++number) {
    if (!leavesRow(number)) {
      if (!loop->getResult(number).use_empty()) {
        return false;
      }
      free.insert(number);
    }
  }
  return free.empty() || !dependsOn(free);
}

bool Carried::leavesRow(unsigned number) {
  Value argument = body.getArgument(number), made = getMade(number);
  if (auto both = made.getDefiningOp<stablehlo::AndOp>()) {
    // A row that has not wanted to go on never does.
    return llvm::is_contained(both->getOperands(), argument) &&
           (regions.isSame(predicate, argument) || isMask(argument));
  }
  // A buffer into which a row writes what is there.
  Value written = getWritten(made, argument);
  auto select = (written ? written : made).getDefiningOp<stablehlo::SelectOp>();
  if (!select) {
    return made == argument;
  }
  bool isOld = written ? isReadWhereWritten(select.getOnFalse(), made)
                       : select.getOnFalse() == argument;
  return isOld && stops(select.getPred());
}

/// Whether what rows are chosen by is the predicate.
bool Carried::goesOn(Value wants) {
  wants = stripSpread(wants);
  return regions.isSame(predicate, wants) || isMask(wants);
}

/// Whether it is false where the predicate is.
bool Carried::stops(Value wants) {
  auto both = stripSpread(wants).getDefiningOp<stablehlo::AndOp>();
  return goesOn(wants) ||
         (both && (stops(both.getLhs()) || stops(both.getRhs())));
}

/// Whether a carried value is true of the rows that go on.
bool Carried::isMask(Value value) {
  auto mask = dyn_cast<BlockArgument>(value);
  if (!mask || mask.getOwner() != &body) {
    return false;
  }
  auto known = masks.find(mask);
  if (known != masks.end()) {
    return known->second;
  }
  auto both = getMade(mask.getArgNumber()).getDefiningOp<stablehlo::AndOp>();
  bool isFound = false;
  if (both && llvm::is_contained(both->getOperands(), mask)) {
    Value next = both.getLhs() == mask ? both.getRhs() : both.getLhs();
    isFound = followsPredicate(mask, next);
  }
  masks[mask] = isFound;
  return isFound;
}

/// By induction over the turns: the mask is the predicate of what the loop
/// begins with, and where a row goes on, `next` is that of what it becomes.
bool Carried::followsPredicate(BlockArgument mask, Value next) {
  SmallVector<Value> following;
  for (unsigned number = 0; number < loop.getNumResults(); ++number) {
    following.push_back(getNext(number, mask));
  }
  return RowComparison(condition, loop->getOperands())
             .isSame(predicate, loop->getOperand(mask.getArgNumber())) &&
         RowComparison(condition, following).isSame(predicate, next);
}

/// What a carried value becomes where a mask is true; null if that is not
/// known.
Value Carried::getNext(unsigned number, BlockArgument mask) {
  Value argument = body.getArgument(number), made = getMade(number);
  auto select = made.getDefiningOp<stablehlo::SelectOp>();
  if (select && select.getOnFalse() == argument &&
      stripSpread(select.getPred()) == mask) {
    return select.getOnTrue();
  }
  return made == argument ? argument : Value();
}

bool Carried::isCount(Value value) {
  value = stripRows(value);
  auto argument = dyn_cast<BlockArgument>(value);
  if (!argument) {
    // One that follows it.
    auto add = value.getDefiningOp<stablehlo::AddOp>();
    DenseIntElementsAttr step;
    return add && matchPattern(stripRows(add.getRhs()), m_Constant(&step)) &&
           step.isSplat() && isCount(add.getLhs());
  }
  if (argument.getOwner() != &body) {
    return false;
  }
  unsigned number = argument.getArgNumber();
  auto select = getMade(number).getDefiningOp<stablehlo::SelectOp>();
  if (!select || select.getOnFalse() != argument || !goesOn(select.getPred())) {
    return false;
  }
  auto add = stripRows(select.getOnTrue()).getDefiningOp<stablehlo::AddOp>();
  DenseIntElementsAttr step;
  return add && add.getLhs() == argument &&
         isOneNumber(loop->getOperand(number)) &&
         matchPattern(stripRows(add.getRhs()), m_Constant(&step)) &&
         step.isSplat() && step.getSplatValue<APInt>().isStrictlyPositive();
}

bool Carried::isMadeOfCounts(Value value) {
  value = stripRows(value);
  if (isCount(value) ||
      (value.getDefiningOp<stablehlo::ConstantOp>() && isOneNumber(value))) {
    return true;
  }
  Operation *maker = value.getDefiningOp();
  return maker && maker->hasTrait<OpTrait::Elementwise>() &&
         llvm::all_of(maker->getOperands(),
                      [&](Value one) { return isMadeOfCounts(one); });
}

/// Whether a value of the body is one of those any of which makes a row go on.
bool Carried::isPartOf(Value whole, Value part) {
  if (regions.isSame(whole, part)) {
    return true;
  }
  auto either = stripRows(whole).getDefiningOp<stablehlo::OrOp>();
  return either &&
         (isPartOf(either.getLhs(), part) || isPartOf(either.getRhs(), part));
}

/// Whether the predicate is made from any of some carried values.
bool Carried::dependsOn(const llvm::SmallDenseSet<unsigned> &numbers) {
  llvm::SetVector<Value> work;
  work.insert(predicate);
  for (size_t next = 0; next < work.size(); ++next) {
    Value value = work[next];
    auto argument = dyn_cast<BlockArgument>(value);
    if (argument && argument.getOwner() == &condition &&
        numbers.contains(argument.getArgNumber())) {
      return true;
    }
    if (Operation *maker = value.getDefiningOp()) {
      forEachUsedValue(maker, [&](Value used) { work.insert(used); });
    }
  }
  return false;
}

bool isLockstepReduction(Operation *op) {
  auto reduce = dyn_cast<stablehlo::ReduceOp>(op);
  auto loop = dyn_cast<stablehlo::WhileOp>(op->getParentOp());
  if (!reduce || !loop) {
    return false;
  }
  Value goesOn = loop.getCond().front().getTerminator()->getOperand(0);
  stablehlo::ReduceOp any = findAny(goesOn);
  if (!any) {
    return false;
  }
  Carried carried(loop, any.getInputs()[0]);
  if (op->getParentRegion() == &loop.getCond()) {
    return any == reduce && op->hasOneUse() && carried.leaveRows();
  }
  Value value = reduce.getInputs()[0];
  bool isOfAll =
      (isAny(reduce) && carried.isOfTurn(value)) ||
      (isReduction<stablehlo::MaxOp>(reduce) && carried.isCount(value));
  return isOfAll && carried.leaveRows();
}

} // namespace mlir::alpa
