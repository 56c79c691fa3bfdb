//===- SortedCounts.cpp - How many rows groups have -----------------------===//

#include "cpp/transforms/SortedCounts.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/IntegerRange.h"
#include "cpp/transforms/SortedIndices.h"
#include "dialects/stablehlo/ShardingRules/KnownValues.h"
#include <limits>

namespace mlir::alpa {

using Numbers = std::vector<int64_t>;

/// So many groups, and so many of their running totals, are looked at.
static constexpr int64_t kMaxCounts = 1 << 10;
static constexpr int64_t kMaxPrefixes = 1 << 12;

static RankedTensorType getTensor(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

/// Numbers without what changes none from 0 on: an index below 0 counts from
/// the end, others are raised to it, and those of 64 bits are made shorter.
/// Null if there may be some that are changed.
static Value stripNegative(Value value) {
  bool isRaised = false;
  IntegerRange kept{0, std::numeric_limits<int64_t>::max()};
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
    if (auto convert = dyn_cast_or_null<stablehlo::ConvertOp>(op)) {
      std::optional<IntegerRange> range =
          getRangeOfType(getTensor(value).getElementType());
      if (!range || !isInteger(convert.getOperand())) {
        break;
      }
      isRaised = false;
      kept.most = std::min(kept.most, range->most);
      value = convert.getOperand();
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
  std::optional<IntegerRange> range = IntegerRanges().get(value);
  bool isKept = range && (isRaised || range->least >= kept.least) &&
                range->most <= kept.most;
  return isKept ? value : Value();
}

static bool isAddition(Region &region) {
  Block &body = region.front();
  return body.getOperations().size() == 2 &&
         isa<stablehlo::AddOp>(body.front());
}

/// The numbers of which a scatter counts each: `jnp.bincount`.
static Value getScattered(stablehlo::ScatterOp op) {
  auto dims = op.getScatterDimensionNumbers();
  bool isCount = op.getInputs().size() == 1 &&
                 isZero(stablehlo::getBeforeLoops(op.getInputs()[0])) &&
                 getTensor(op.getInputs()[0]).getRank() == 1 &&
                 getSplat(op.getUpdates()[0]) == 1 &&
                 dims.getUpdateWindowDims().empty() &&
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
    auto spread = stablehlo::getBeforeLoops(value)
                      .getDefiningOp<stablehlo::BroadcastInDimOp>();
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
      !isZero(stablehlo::getBeforeLoops(op.getInitValues()[0])) ||
      !isAddition(op.getBody())) {
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
