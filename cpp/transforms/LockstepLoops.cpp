//===- LockstepLoops.cpp - Loops that each row leaves by itself -----------===//

#include "cpp/transforms/LockstepLoops.h"

#include "cpp/analysis/DataFlow.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OperationSupport.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::alpa {

namespace {

/// Compares what two regions with equal arguments make of these.
class RegionComparison {
public:
  RegionComparison(Block &left, Block &right) : left(left), right(right) {}

  bool isSame(Value one, Value other) {
    auto number = dyn_cast<BlockArgument>(one);
    auto otherNumber = dyn_cast<BlockArgument>(other);
    if (number && otherNumber && number.getOwner() == &left &&
        otherNumber.getOwner() == &right) {
      return number.getArgNumber() == otherNumber.getArgNumber();
    }
    if (one == other) {
      return true;
    }
    Operation *maker = one.getDefiningOp(), *second = other.getDefiningOp();
    if (!maker || !second ||
        cast<OpResult>(one).getResultNumber() !=
            cast<OpResult>(other).getResultNumber()) {
      return false;
    }
    auto known = compared.find({maker, second});
    if (known == compared.end()) {
      bool isEqual = areSame(*maker, *second);
      known = compared.insert({{maker, second}, isEqual}).first;
    }
    return known->second;
  }

private:
  bool areSame(Operation &one, Operation &other) {
    auto areSameValues = [&](auto pair) {
      return isSame(std::get<0>(pair), std::get<1>(pair));
    };
    auto areSameRegions = [](auto pair) {
      return OperationEquivalence::isRegionEquivalentTo(
          &std::get<0>(pair), &std::get<1>(pair),
          OperationEquivalence::IgnoreLocations);
    };
    return one.getName() == other.getName() &&
           one.getAttrDictionary() == other.getAttrDictionary() &&
           one.getNumOperands() == other.getNumOperands() &&
           llvm::equal(one.getResultTypes(), other.getResultTypes()) &&
           llvm::all_of(llvm::zip(one.getOperands(), other.getOperands()),
                        areSameValues) &&
           llvm::all_of(llvm::zip_equal(one.getRegions(), other.getRegions()),
                        areSameRegions);
  }

  Block &left, &right;
  DenseMap<std::pair<Operation *, Operation *>, bool> compared;
};

/// Whether a reduction says if any element is true.
bool isAny(stablehlo::ReduceOp reduce) {
  return reduce && reduce.getInputs().size() == 1 &&
         cast<RankedTensorType>(reduce.getType(0)).getRank() == 0 &&
         matchPattern(reduce.getInitValues()[0], m_Zero()) &&
         llvm::hasSingleElement(
             reduce.getBody().front().without_terminator()) &&
         isa<stablehlo::OrOp>(reduce.getBody().front().front());
}

} // namespace

/// The reduction that a loop goes on by, perhaps with other conditions.
static stablehlo::ReduceOp findAny(Value goesOn) {
  if (auto both = goesOn.getDefiningOp<stablehlo::AndOp>()) {
    stablehlo::ReduceOp left = findAny(both.getLhs());
    return left ? left : findAny(both.getRhs());
  }
  auto reduce = goesOn.getDefiningOp<stablehlo::ReduceOp>();
  return isAny(reduce) ? reduce : nullptr;
}

namespace {

/// What becomes of the values that a loop carries where a row does not go on.
class Carried {
public:
  Carried(stablehlo::WhileOp loop, Value predicate)
      : loop(loop), predicate(predicate),
        regions(loop.getCond().front(), loop.getBody().front()) {}

  /// Whether rows stay as they are, in all that is used behind the loop, and
  /// that they go by.
  bool leaveRows() {
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

private:
  bool leavesRow(unsigned number) {
    Block &body = loop.getBody().front();
    Value argument = body.getArgument(number);
    Value made = body.getTerminator()->getOperand(number);
    if (auto both = made.getDefiningOp<stablehlo::AndOp>()) {
      // A row that has not wanted to go on never does.
      return regions.isSame(predicate, argument) &&
             llvm::is_contained(both->getOperands(), argument);
    }
    auto select = made.getDefiningOp<stablehlo::SelectOp>();
    if (!select || select.getOnFalse() != argument) {
      return made == argument;
    }
    Value wants = select.getPred();
    while (auto spread = wants.getDefiningOp<stablehlo::BroadcastInDimOp>()) {
      wants = spread.getOperand();
    }
    return regions.isSame(predicate, wants);
  }

  /// Whether the predicate is made from any of some carried values.
  bool dependsOn(const llvm::SmallDenseSet<unsigned> &numbers) {
    Block *condition = &loop.getCond().front();
    llvm::SetVector<Value> work;
    work.insert(predicate);
    for (size_t next = 0; next < work.size(); ++next) {
      Value value = work[next];
      auto argument = dyn_cast<BlockArgument>(value);
      if (argument && argument.getOwner() == condition &&
          numbers.contains(argument.getArgNumber())) {
        return true;
      }
      if (Operation *maker = value.getDefiningOp()) {
        forEachUsedValue(maker, [&](Value used) { work.insert(used); });
      }
    }
    return false;
  }

  stablehlo::WhileOp loop;
  Value predicate;
  RegionComparison regions;
};

} // namespace

bool isLockstepPredicate(Operation *op) {
  auto any = dyn_cast<stablehlo::ReduceOp>(op);
  auto loop = dyn_cast<stablehlo::WhileOp>(op->getParentOp());
  if (!any || !loop || op->getParentRegion() != &loop.getCond() ||
      !any->hasOneUse()) {
    return false;
  }
  Value goesOn = loop.getCond().front().getTerminator()->getOperand(0);
  return findAny(goesOn) == any &&
         Carried(loop, any.getInputs()[0]).leaveRows();
}

} // namespace mlir::alpa
