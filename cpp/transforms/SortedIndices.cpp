//===- SortedIndices.cpp - Numbers of sorted rows -------------------------===//

#include "cpp/transforms/SortedIndices.h"

#include "dialects/stablehlo/ShardingRules/KnownValues.h"
#include "mlir/IR/Matchers.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::alpa {

using Numbers = std::vector<int64_t>;

/// So many numbers are looked at one by one at most.
static constexpr int64_t kMaxNumbers = 1 << 24;

static RankedTensorType getTensor(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

bool isInteger(Value value) {
  RankedTensorType type = getTensor(value);
  return type && isa<IntegerType>(type.getElementType());
}

stablehlo::IotaOp getIota(Value value) {
  return stablehlo::getBeforeLoops(value).getDefiningOp<stablehlo::IotaOp>();
}

std::optional<int64_t> getSplat(Value value) {
  value = stablehlo::getBeforeLoops(value);
  DenseIntElementsAttr constant;
  if (!isInteger(value)) {
    return std::nullopt;
  }
  if (auto spread = value.getDefiningOp<stablehlo::BroadcastInDimOp>()) {
    return getSplat(spread.getOperand());
  }
  if (auto convert = value.getDefiningOp<stablehlo::ConvertOp>()) {
    // Of numbers that both types have.
    std::optional<int64_t> number = getSplat(convert.getOperand());
    bool isSmall = number && *number >= 0 && *number < 128;
    return isSmall ? number : std::nullopt;
  }
  if (!matchPattern(value, m_Constant(&constant)) || !constant.isSplat()) {
    return std::nullopt;
  }
  llvm::APInt number = constant.getSplatValue<llvm::APInt>();
  bool isSigned = !constant.getElementType().isUnsignedInteger() &&
                  !constant.getElementType().isInteger(1);
  return isSigned ? number.getSExtValue()
                  : static_cast<int64_t>(number.getZExtValue());
}

bool isWidening(stablehlo::ConvertOp op) {
  auto from =
      dyn_cast<IntegerType>(getTensor(op.getOperand()).getElementType());
  auto to = dyn_cast<IntegerType>(getTensor(op.getResult()).getElementType());
  return from && to && from.getWidth() <= to.getWidth() &&
         from.isUnsigned() == to.isUnsigned();
}

Value stripShape(Value value) {
  while (Operation *op = stablehlo::getBeforeLoops(value).getDefiningOp()) {
    value = stablehlo::getBeforeLoops(value);
    auto convert = dyn_cast<stablehlo::ConvertOp>(op);
    auto spread = dyn_cast<stablehlo::BroadcastInDimOp>(op);
    bool isSame = spread && llvm::is_sorted(spread.getBroadcastDimensions()) &&
                  getTensor(value).getNumElements() ==
                      getTensor(spread.getOperand()).getNumElements();
    if (isa<stablehlo::ReshapeOp>(op) || isSame ||
        (convert && isWidening(convert))) {
      value = op->getOperand(0);
    } else if (isa<stablehlo::OptimizationBarrierOp>(op)) {
      value = op->getOperand(cast<OpResult>(value).getResultNumber());
    } else {
      break;
    }
  }
  return value;
}

//===----------------------------------------------------------------------===//
// Numbers
//===----------------------------------------------------------------------===//

static bool compare(stablehlo::ComparisonDirection direction, int64_t left,
                    int64_t right) {
  using Direction = stablehlo::ComparisonDirection;
  switch (direction) {
  case Direction::EQ:
    return left == right;
  case Direction::NE:
    return left != right;
  case Direction::GE:
    return left >= right;
  case Direction::GT:
    return left > right;
  case Direction::LE:
    return left <= right;
  case Direction::LT:
    return left < right;
  }
  llvm_unreachable("all directions are compared");
}

/// An operator on one element of each operand.
static std::optional<int64_t> apply(Operation *op, ArrayRef<int64_t> x) {
  using Result = std::optional<int64_t>;
  return llvm::TypeSwitch<Operation *, Result>(op)
      .Case([&](stablehlo::AddOp) { return x[0] + x[1]; })
      .Case([&](stablehlo::SubtractOp) { return x[0] - x[1]; })
      .Case([&](stablehlo::MulOp) {
        int64_t product = 0;
        bool isLarger = llvm::MulOverflow(x[0], x[1], product);
        return isLarger ? std::nullopt : Result(product);
      })
      .Case([&](stablehlo::DivOp) {
        return x[1] != 0 ? Result(x[0] / x[1]) : std::nullopt;
      })
      .Case([&](stablehlo::RemOp) {
        return x[1] != 0 ? Result(x[0] % x[1]) : std::nullopt;
      })
      .Case([&](stablehlo::MaxOp) { return std::max(x[0], x[1]); })
      .Case([&](stablehlo::MinOp) { return std::min(x[0], x[1]); })
      .Case([&](stablehlo::ClampOp) {
        return std::min(std::max(x[1], x[0]), x[2]);
      })
      .Case([&](stablehlo::AndOp) { return x[0] & x[1]; })
      .Case([&](stablehlo::OrOp) { return x[0] | x[1]; })
      .Case([&](stablehlo::NegOp) { return -x[0]; })
      .Case([&](stablehlo::AbsOp) { return std::abs(x[0]); })
      .Case([&](stablehlo::SignOp) { return (x[0] > 0) - (x[0] < 0); })
      .Case([&](stablehlo::SelectOp) { return x[0] ? x[1] : x[2]; })
      .Case([&](stablehlo::CompareOp compared) {
        return compare(compared.getComparisonDirection(), x[0], x[1]);
      })
      .Default([](Operation *) { return std::nullopt; });
}

/// Whether a number is one of an element type, so that nothing wraps around.
static bool fits(int64_t number, Type element) {
  unsigned width = element.getIntOrFloatBitWidth();
  return element.isUnsignedInteger() || element.isInteger(1)
             ? number >= 0 && (width >= 63 || llvm::isUIntN(width, number))
             : llvm::isIntN(width, number);
}

NumbersOf::NumbersOf(Value base)
    : base(base), size(getTensor(base).getNumElements()) {}

const Numbers *NumbersOf::get(Value value) {
  auto found = known.find(value);
  if (found == known.end()) {
    // Looking at operands, the map may grow.
    std::optional<Numbers> made = make(value);
    found = known.try_emplace(value, std::move(made)).first;
  }
  return found->second ? &*found->second : nullptr;
}

std::optional<Numbers> NumbersOf::make(Value value) {
  if (static_cast<int64_t>(size) > kMaxNumbers || !isInteger(value)) {
    return std::nullopt;
  }
  if (value == base) {
    Numbers all(size);
    std::iota(all.begin(), all.end(), 0);
    return all;
  }
  if (std::optional<int64_t> splat = getSplat(value)) {
    return Numbers{*splat};
  }
  Operation *op = stablehlo::getBeforeLoops(value).getDefiningOp();
  if (!op) {
    return std::nullopt;
  }
  if (isa<stablehlo::BroadcastInDimOp, stablehlo::ReshapeOp,
          stablehlo::ConvertOp>(op)) {
    const Numbers *operand = get(op->getOperand(0));
    auto spread = dyn_cast<stablehlo::BroadcastInDimOp>(op);
    bool isInOrder =
        !spread || llvm::is_sorted(spread.getBroadcastDimensions());
    bool isSame = operand && (operand->size() == 1 ||
                              (isInOrder && getTensor(value).getNumElements() ==
                                                static_cast<int64_t>(size)));
    Type element = getTensor(value).getElementType();
    isSame = isSame && llvm::all_of(*operand, [&](int64_t number) {
               return fits(number, element);
             });
    return isSame ? std::optional(*operand) : std::nullopt;
  }
  if (isa<stablehlo::OptimizationBarrierOp>(op)) {
    const Numbers *operand =
        get(op->getOperand(cast<OpResult>(value).getResultNumber()));
    return operand ? std::optional(*operand) : std::nullopt;
  }
  return makeElementwise(op);
}

/// Of reductions, those over dimensions of one element.
std::optional<Numbers> NumbersOf::makeElementwise(Operation *op) {
  Operation *applied = op;
  if (auto reduce = dyn_cast<stablehlo::ReduceOp>(op)) {
    Block &body = reduce.getBody().front();
    bool isOverUnits = op->getNumResults() == 1 &&
                       body.getOperations().size() == 2 &&
                       getTensor(op->getOperand(0)).getNumElements() ==
                           getTensor(op->getResult(0)).getNumElements();
    if (!isOverUnits) {
      return std::nullopt;
    }
    applied = &body.front();
  }
  SmallVector<const Numbers *> operands;
  size_t count = 1;
  for (Value operand : op->getOperands()) {
    operands.push_back(get(operand));
    if (!operands.back()) {
      return std::nullopt;
    }
    count = std::max(count, operands.back()->size());
  }
  // The map has grown.
  for (auto [value, operand] : llvm::zip(op->getOperands(), operands)) {
    operand = get(value);
  }
  Numbers made(count);
  SmallVector<int64_t> row(operands.size());
  Type element = getTensor(op->getResult(0)).getElementType();
  for (size_t index = 0; index < count; ++index) {
    for (auto [number, operand] : llvm::zip(row, operands)) {
      number = (*operand)[operand->size() == 1 ? 0 : index];
    }
    std::optional<int64_t> found = apply(applied, row);
    if (!found || !fits(*found, element)) {
      return std::nullopt;
    }
    made[index] = *found;
  }
  return made;
}

//===----------------------------------------------------------------------===//
// Places
//===----------------------------------------------------------------------===//

/// So many operators are looked at for the sort that numbers come from.
static constexpr size_t kMaxOperators = 64;

/// Where rows stood in front of the one sort that numbers are computed of: each
/// position is there once. Null if there are none or several.
static Value findPositions(Value numbers) {
  Value found;
  SmallVector<Value> worklist{numbers};
  llvm::SmallDenseSet<Value> seen;
  while (!worklist.empty()) {
    Value value = stablehlo::getBeforeLoops(worklist.pop_back_val());
    Operation *op = value.getDefiningOp();
    if (!op || !isInteger(value) || !seen.insert(value).second) {
      continue;
    }
    auto sort = dyn_cast<stablehlo::SortOp>(op);
    if (sort && getTensor(value).getRank() == 1 &&
        getIota(op->getOperand(cast<OpResult>(value).getResultNumber()))) {
      if (found && found != value) {
        return {};
      }
      found = value;
      continue;
    }
    if (seen.size() > kMaxOperators) {
      return {};
    }
    llvm::append_range(worklist, op->getOperands());
  }
  return found;
}

/// Of constants, whatever their shape.
static std::optional<Numbers> getConstants(Value value) {
  DenseIntElementsAttr constant;
  if (!matchPattern(stripShape(value), m_Constant(&constant)) ||
      constant.getNumElements() > kMaxNumbers ||
      constant.getNumElements() != getTensor(value).getNumElements() ||
      getTensor(stripShape(value)).getElementTypeBitWidth() > 63) {
    return std::nullopt;
  }
  bool isSigned = !constant.getElementType().isUnsignedInteger();
  Numbers numbers;
  for (const llvm::APInt &number : constant.getValues<llvm::APInt>()) {
    numbers.push_back(isSigned ? number.getSExtValue()
                               : static_cast<int64_t>(number.getZExtValue()));
  }
  return numbers;
}

bool areDistinct(Value indices, int64_t size) {
  std::optional<Numbers> numbers = getConstants(indices);
  if (Value positions = numbers ? Value() : findPositions(indices)) {
    NumbersOf all(positions);
    const Numbers *made = all.get(indices);
    numbers = made ? std::optional(*made) : std::nullopt;
  }
  if (!numbers || static_cast<int64_t>(numbers->size()) !=
                      getTensor(indices).getNumElements()) {
    return false;
  }
  llvm::BitVector taken(size);
  return llvm::all_of(*numbers, [&](int64_t number) {
    bool isNew = number >= 0 && number < size && !taken[number];
    if (isNew) {
      taken.set(number);
    }
    return isNew;
  });
}

} // namespace mlir::alpa
