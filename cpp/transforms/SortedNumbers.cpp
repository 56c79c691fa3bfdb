//===- SortedNumbers.cpp - Indices and counts of sorted rows --------------===//

#include "cpp/transforms/SortedNumbers.h"

#include "cpp/analysis/DataFlow.h"
#include "mlir/IR/Matchers.h"
#include "stablehlo/dialect/ChloOps.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::alpa {

using Numbers = std::vector<int64_t>;

/// So many numbers are looked at one by one at most.
static constexpr int64_t kMaxNumbers = 1 << 24;
static constexpr int64_t kMaxCounts = 1 << 10;
static constexpr int64_t kMaxPrefixes = 1 << 12;

static RankedTensorType getTensor(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

static bool isInteger(Value value) {
  RankedTensorType type = getTensor(value);
  return type && isa<IntegerType>(type.getElementType());
}

Value getOutside(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  while (argument) {
    auto loop =
        dyn_cast<stablehlo::WhileOp>(argument.getOwner()->getParentOp());
    unsigned number = argument.getArgNumber();
    if (!loop || loop.getBody().front().getTerminator()->getOperand(number) !=
                     loop.getBody().getArgument(number)) {
      break;
    }
    value = loop->getOperand(number);
    argument = dyn_cast<BlockArgument>(value);
  }
  return value;
}

stablehlo::IotaOp getIota(Value value) {
  return getOutside(value).getDefiningOp<stablehlo::IotaOp>();
}

/// The number that a constant has everywhere.
static std::optional<int64_t> getSplat(Value value) {
  value = getOutside(value);
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
      .Case([&](stablehlo::MulOp) { return x[0] * x[1]; })
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
  Operation *op = getOutside(value).getDefiningOp();
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
  bool isUnsigned =
      getTensor(op->getResult(0)).getElementType().isUnsignedInteger();
  for (size_t index = 0; index < count; ++index) {
    for (auto [number, operand] : llvm::zip(row, operands)) {
      number = (*operand)[operand->size() == 1 ? 0 : index];
    }
    std::optional<int64_t> found = apply(applied, row);
    if (!found || (isUnsigned && *found < 0)) {
      return std::nullopt;
    }
    made[index] = *found;
  }
  return made;
}

//===----------------------------------------------------------------------===//
// Counts
//===----------------------------------------------------------------------===//

static bool isWidening(stablehlo::ConvertOp op) {
  auto from =
      dyn_cast<IntegerType>(getTensor(op.getOperand()).getElementType());
  auto to = dyn_cast<IntegerType>(getTensor(op.getResult()).getElementType());
  return from && to && from.getWidth() <= to.getWidth() &&
         from.isUnsigned() == to.isUnsigned();
}

Value stripShape(Value value) {
  while (Operation *op = getOutside(value).getDefiningOp()) {
    value = getOutside(value);
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

/// Whether what a reduction of several tensors makes of one of them is some of
/// its elements: positions of the largest.
static bool picks(Value made, BlockArgument left, BlockArgument right) {
  if (made == left || made == right) {
    return true;
  }
  Operation *op = made.getDefiningOp();
  if (auto select = dyn_cast_or_null<stablehlo::SelectOp>(op)) {
    return picks(select.getOnTrue(), left, right) &&
           picks(select.getOnFalse(), left, right);
  }
  return isa_and_present<stablehlo::MinOp, stablehlo::MaxOp>(op) &&
         picks(op->getOperand(0), left, right) &&
         picks(op->getOperand(1), left, right);
}

/// Whether a value has no number below 0.
static bool isNonNegative(Value value) {
  value = stripShape(value);
  if (!isInteger(value)) {
    return false;
  }
  if (getTensor(value).getElementType().isUnsignedInteger()) {
    return true;
  }
  if (std::optional<int64_t> splat = getSplat(value)) {
    return *splat >= 0;
  }
  Operation *op = value.getDefiningOp();
  if (getIota(value)) {
    return true;
  }
  if (isa_and_present<chlo::TopKOp>(op)) {
    return cast<OpResult>(value).getResultNumber() == 1;
  }
  if (isa_and_present<stablehlo::SliceOp, stablehlo::TransposeOp,
                      stablehlo::BroadcastInDimOp>(op)) {
    return isNonNegative(op->getOperand(0));
  }
  if (isa_and_present<stablehlo::SortOp>(op)) {
    return isNonNegative(
        op->getOperand(cast<OpResult>(value).getResultNumber()));
  }
  if (isa_and_present<stablehlo::MaxOp>(op)) {
    return llvm::any_of(op->getOperands(), isNonNegative);
  }
  auto reduce = dyn_cast_or_null<stablehlo::ReduceOp>(op);
  if (!reduce) {
    return false;
  }
  unsigned number = cast<OpResult>(value).getResultNumber();
  unsigned count = reduce.getInputs().size();
  Block &body = reduce.getBody().front();
  return picks(body.getTerminator()->getOperand(number),
               body.getArgument(number), body.getArgument(count + number)) &&
         isNonNegative(reduce.getInputs()[number]) &&
         isNonNegative(reduce.getInitValues()[number]);
}

/// Numbers without what changes none from 0 on: an index below 0 counts from
/// the end, others are raised to it. Null if there may be some.
static Value stripNegative(Value value) {
  bool isRaised = false;
  for (;;) {
    value = stripShape(value);
    Operation *op = value.getDefiningOp();
    if (auto most = dyn_cast_or_null<stablehlo::MaxOp>(op)) {
      bool isLeft = getSplat(most.getLhs()) == 0;
      if (!isLeft && getSplat(most.getRhs()) != 0) {
        break;
      }
      isRaised = true;
      value = isLeft ? most.getRhs() : most.getLhs();
      continue;
    }
    auto select = dyn_cast_or_null<stablehlo::SelectOp>(op);
    auto below = select ? select.getPred().getDefiningOp<stablehlo::CompareOp>()
                        : stablehlo::CompareOp();
    if (!below ||
        below.getComparisonDirection() != stablehlo::ComparisonDirection::LT ||
        getSplat(below.getRhs()) != 0 ||
        below.getLhs() != select.getOnFalse()) {
      break;
    }
    isRaised = false;
    value = select.getOnFalse();
  }
  return isRaised || isNonNegative(value) ? value : Value();
}

static bool isAddition(Region &region) {
  Block &body = region.front();
  return body.getOperations().size() == 2 &&
         isa<stablehlo::AddOp>(body.front());
}

/// The numbers of which a scatter counts each: `jnp.bincount`.
static Value getScattered(stablehlo::ScatterOp op) {
  auto dims = op.getScatterDimensionNumbers();
  bool isCount =
      op.getInputs().size() == 1 && isZero(getOutside(op.getInputs()[0])) &&
      getTensor(op.getInputs()[0]).getRank() == 1 &&
      getSplat(op.getUpdates()[0]) == 1 && dims.getUpdateWindowDims().empty() &&
      dims.getInsertedWindowDims().size() == 1 &&
      isAddition(op.getUpdateComputation()) &&
      getTensor(op.getScatterIndices()).getNumElements() ==
          getTensor(op.getUpdates()[0]).getNumElements();
  return isCount ? stripNegative(op.getScatterIndices()) : Value();
}

/// What a value has along one dimension, if it is the same along all others.
static Value getLine(Value value, int64_t dim) {
  while (getTensor(value).getNumElements() !=
         getTensor(value).getDimSize(dim)) {
    if (stablehlo::IotaOp iota = getIota(value)) {
      return static_cast<int64_t>(iota.getIotaDimension()) == dim ? value
                                                                  : Value();
    }
    auto convert = value.getDefiningOp<stablehlo::ConvertOp>();
    if (convert && isWidening(convert)) {
      value = convert.getOperand();
      continue;
    }
    auto spread =
        getOutside(value).getDefiningOp<stablehlo::BroadcastInDimOp>();
    if (!spread) {
      return {};
    }
    ArrayRef<int64_t> dims = spread.getBroadcastDimensions();
    const auto *source = llvm::find(dims, dim);
    int64_t size = getTensor(value).getDimSize(dim);
    value = spread.getOperand();
    dim = source - dims.begin();
    if (source == dims.end() || getTensor(value).getDimSize(dim) != size) {
      return {};
    }
  }
  return stripShape(value);
}

/// The numbers of which a sum of comparisons counts each: `jax.nn.one_hot`.
static Value getCompared(stablehlo::ReduceOp op) {
  if (op.getInputs().size() != 1 || op.getDimensions().size() != 1 ||
      !isZero(getOutside(op.getInitValues()[0])) || !isAddition(op.getBody())) {
    return {};
  }
  Value flags = op.getInputs()[0];
  while (auto convert = flags.getDefiningOp<stablehlo::ConvertOp>()) {
    flags = convert.getOperand();
  }
  auto equal = flags.getDefiningOp<stablehlo::CompareOp>();
  if (!equal ||
      equal.getComparisonDirection() != stablehlo::ComparisonDirection::EQ ||
      getTensor(equal.getLhs()).getRank() != 2 || !isInteger(equal.getLhs())) {
    return {};
  }
  int64_t rows = op.getDimensions()[0];
  for (bool isLeft : {true, false}) {
    Value numbers = getLine(equal->getOperand(isLeft ? 0 : 1), rows);
    Value groups = getLine(equal->getOperand(isLeft ? 1 : 0), 1 - rows);
    if (numbers && groups && getIota(groups) && !getIota(numbers)) {
      return stripNegative(numbers);
    }
  }
  return {};
}

/// Whether an element holds the number of all rows.
static bool holdsRows(Value counts) {
  Type type = getTensor(counts).getElementType();
  return type.isF32() || type.isF64() ||
         (isa<IntegerType>(type) && type.getIntOrFloatBitWidth() >= 32);
}

Value getCounted(Value counts) {
  auto convert = counts.getDefiningOp<stablehlo::ConvertOp>();
  while (convert && holdsRows(counts)) {
    counts = convert.getOperand();
    convert = counts.getDefiningOp<stablehlo::ConvertOp>();
  }
  if (!holdsRows(counts)) {
    return {};
  }
  if (auto scatter = counts.getDefiningOp<stablehlo::ScatterOp>()) {
    return getScattered(scatter);
  }
  auto reduce = counts.getDefiningOp<stablehlo::ReduceOp>();
  return reduce ? getCompared(reduce) : Value();
}

//===----------------------------------------------------------------------===//
// Running totals
//===----------------------------------------------------------------------===//

namespace {

/// Sums of counts, element by element: how often each has each count.
class Sums {
public:
  using Rows = std::vector<Numbers>;

  std::optional<Rows> make(Value value);
  Value counts;

private:
  std::optional<Rows> makeWindows(stablehlo::ReduceWindowOp op);
  std::optional<Rows> makePlaces(Operation *op);
  size_t numCounts = 0;
};

} // namespace

std::optional<Sums::Rows> Sums::make(Value value) {
  RankedTensorType type = getTensor(value);
  if (!isInteger(value) || type.getRank() > 1 ||
      type.getNumElements() > kMaxPrefixes) {
    return std::nullopt;
  }
  if (getCounted(value)) {
    if (type.getNumElements() > kMaxCounts || (counts && counts != value)) {
      return std::nullopt;
    }
    counts = value;
    numCounts = type.getNumElements();
    Rows rows(numCounts, Numbers(numCounts));
    for (auto [index, row] : llvm::enumerate(rows)) {
      row[index] = 1;
    }
    return rows;
  }
  if (getSplat(value) == 0) {
    return Rows(type.getNumElements());
  }
  Operation *op = value.getDefiningOp();
  if (!op) {
    return std::nullopt;
  }
  if (auto windows = dyn_cast<stablehlo::ReduceWindowOp>(op)) {
    return makeWindows(windows);
  }
  return makePlaces(op);
}

static void addTo(Numbers &sum, const Numbers &row) {
  sum.resize(std::max(sum.size(), row.size()));
  for (auto [index, number] : llvm::enumerate(row)) {
    sum[index] += number;
  }
}

std::optional<Sums::Rows> Sums::makeWindows(stablehlo::ReduceWindowOp op) {
  auto isOnes = [](std::optional<ArrayRef<int64_t>> sizes) {
    return !sizes || llvm::all_of(*sizes, [](int64_t one) { return one == 1; });
  };
  if (op.getInputs().size() != 1 || !isAddition(op.getBody()) ||
      getSplat(op.getInitValues()[0]) != 0 || !isOnes(op.getWindowStrides()) ||
      !isOnes(op.getBaseDilations()) || !isOnes(op.getWindowDilations())) {
    return std::nullopt;
  }
  std::optional<Rows> operand = make(op.getInputs()[0]);
  if (!operand || getTensor(op.getInputs()[0]).getRank() != 1) {
    return std::nullopt;
  }
  int64_t low =
      op.getPadding() ? *op.getPadding()->getValues<int64_t>().begin() : 0;
  Rows rows(getTensor(op.getResult(0)).getNumElements());
  int64_t window = op.getWindowDimensions()[0];
  for (auto [index, row] : llvm::enumerate(rows)) {
    for (int64_t at = 0; at < window; ++at) {
      int64_t from = static_cast<int64_t>(index) + at - low;
      if (from >= 0 && from < static_cast<int64_t>(operand->size())) {
        addTo(row, (*operand)[from]);
      }
    }
  }
  return rows;
}

/// What hands elements on, or adds two.
std::optional<Sums::Rows> Sums::makePlaces(Operation *op) {
  SmallVector<Rows> operands;
  for (Value operand : op->getOperands()) {
    std::optional<Rows> made = make(operand);
    if (!made) {
      return std::nullopt;
    }
    operands.push_back(std::move(*made));
  }
  if (isa<stablehlo::AddOp>(op)) {
    for (auto [sum, row] : llvm::zip_equal(operands[0], operands[1])) {
      addTo(sum, row);
    }
    return operands[0];
  }
  if (isa<stablehlo::ConcatenateOp>(op)) {
    Rows rows;
    for (Rows &operand : operands) {
      llvm::append_range(rows, operand);
    }
    return rows;
  }
  if (auto slice = dyn_cast<stablehlo::SliceOp>(op)) {
    Rows rows;
    for (int64_t at = slice.getStartIndices()[0];
         at < slice.getLimitIndices()[0]; at += slice.getStrides()[0]) {
      rows.push_back(operands[0][at]);
    }
    return rows;
  }
  if (auto pad = dyn_cast<stablehlo::PadOp>(op)) {
    int64_t low = pad.getEdgePaddingLow()[0],
            high = pad.getEdgePaddingHigh()[0];
    if (low < 0 || high < 0 || pad.getInteriorPadding()[0] != 0) {
      return std::nullopt;
    }
    Rows rows(low);
    llvm::append_range(rows, operands[0]);
    rows.resize(rows.size() + high);
    return rows;
  }
  bool isSame =
      isa<stablehlo::ReshapeOp, stablehlo::ConvertOp>(op) &&
      operands[0].size() ==
          static_cast<size_t>(getTensor(op->getResult(0)).getNumElements());
  return isSame ? std::optional(operands[0]) : std::nullopt;
}

std::optional<PrefixCounts> getPrefixCounts(Value value) {
  Sums sums;
  std::optional<Sums::Rows> rows = sums.make(value);
  if (!rows || !sums.counts) {
    return std::nullopt;
  }
  PrefixCounts found{sums.counts, {}};
  for (const Numbers &row : *rows) {
    auto end = std::find_if(row.begin(), row.end(),
                            [](int64_t number) { return number != 1; });
    if (std::any_of(end, row.end(),
                    [](int64_t number) { return number != 0; })) {
      return std::nullopt;
    }
    found.bounds.push_back(end - row.begin());
  }
  return found;
}

} // namespace mlir::alpa
