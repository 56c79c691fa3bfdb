//===- SortedRows.cpp - What is done to rows in another order -------------===//

#include "cpp/transforms/SortedRows.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/transforms/MicroBatchStates.h"
#include "cpp/transforms/ScoreLabels.h"
#include "dialects/stablehlo/ShardingRules/KnownValues.h"
#include "mlir/IR/Matchers.h"

namespace mlir::alpa {

static RankedTensorType getTensor(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

bool isUniformAlong(Value value, int64_t dim) {
  value = stablehlo::getBeforeLoops(value);
  RankedTensorType type = getTensor(value);
  Operation *op = value.getDefiningOp();
  if (!type || type.getRank() == 0 || type.getDimSize(dim) == 1) {
    return true;
  }
  DenseElementsAttr constant;
  if (!op || matchPattern(value, m_Constant(&constant))) {
    return op && constant.isSplat();
  }
  if (auto iota = dyn_cast<stablehlo::IotaOp>(op)) {
    return static_cast<int64_t>(iota.getIotaDimension()) != dim;
  }
  if (auto spread = dyn_cast<stablehlo::BroadcastInDimOp>(op)) {
    ArrayRef<int64_t> dims = spread.getBroadcastDimensions();
    const auto *source = llvm::find(dims, dim);
    return source == dims.end() ||
           isUniformAlong(spread.getOperand(), source - dims.begin());
  }
  return isElementwise(op) &&
         llvm::all_of(op->getOperands(), [&](Value operand) {
           return isUniformAlong(operand, dim);
         });
}

SortedRows::SortedRows(Block &block, int64_t numParts) : numParts(numParts) {
  while (!follow(block)) {
  }
}

/// False if a sort was left out, so that all has to be looked at again.
bool SortedRows::follow(Block &block) {
  orders.clear();
  contents.clear();
  sorts.clear();
  steps.clear();
  wanted.clear();
  for (Operation &op : block.without_terminator()) {
    if (!visit(&op)) {
      return exclude(&op);
    }
  }
  bool isDone = true;
  auto leave = [&](Operation *sort) {
    isDone &= !excluded.insert(sort).second;
  };
  for (Value value : block.getTerminator()->getOperands()) {
    if (auto order = getOrder(value)) {
      leave(order->sort);
    }
    if (auto found = contents.find(value); found != contents.end()) {
      leave(found->second.sort);
    }
  }
  for (stablehlo::SortOp sort : sorts) {
    if (!wanted.contains(sort)) {
      leave(sort);
    }
  }
  return isDone;
}

bool SortedRows::exclude(Operation *op) {
  forEachUsedValue(op, [&](Value value) {
    if (auto order = getOrder(value)) {
      excluded.insert(order->sort);
    }
    if (auto found = contents.find(value); found != contents.end()) {
      excluded.insert(found->second.sort);
    }
  });
  return false;
}

std::optional<RowOrder> SortedRows::getOrder(Value value) const {
  auto found = orders.find(value);
  return found == orders.end() ? std::nullopt : std::optional(found->second);
}

bool SortedRows::set(Value value, std::optional<RowOrder> order) {
  if (order) {
    orders.insert({value, *order});
  }
  return true;
}

bool SortedRows::visit(Operation *op) {
  bool isTouched = false;
  forEachUsedValue(op, [&](Value value) {
    isTouched |= orders.contains(value) || contents.contains(value);
  });
  if (auto sort = dyn_cast<stablehlo::SortOp>(op)) {
    return visitSort(sort);
  }
  if (auto compared = dyn_cast<stablehlo::CompareOp>(op);
      compared && visitPositions(compared)) {
    return true;
  }
  if (!isTouched) {
    return true;
  }
  if (isGradientBarrier(op)) {
    return false;
  }
  if (isa<stablehlo::OptimizationBarrierOp>(op)) {
    return visitBarrier(op);
  }
  if (auto groups = dyn_cast<chlo::RaggedDotOp>(op)) {
    return visitGroups(groups);
  }
  if (visitIndex(op)) {
    return true;
  }
  if (auto gather = dyn_cast<stablehlo::GatherOp>(op)) {
    return visitGather(gather);
  }
  if (auto scatter = dyn_cast<stablehlo::ScatterOp>(op)) {
    return visitScatter(scatter);
  }
  for (Value operand : op->getOperands()) {
    auto found = contents.find(operand);
    if (found != contents.end() && !isSameInParts(found->second, operand)) {
      return false;
    }
  }
  return visitOrdered(op);
}

//===----------------------------------------------------------------------===//
// Sorts and indices
//===----------------------------------------------------------------------===//

/// Whether a sort is by its first operand, from the least integer on.
static bool isAscending(stablehlo::SortOp op) {
  Block &body = op.getComparator().front();
  auto compared = dyn_cast<stablehlo::CompareOp>(body.front());
  return compared && body.getOperations().size() == 2 &&
         compared.getComparisonDirection() ==
             stablehlo::ComparisonDirection::LT &&
         compared.getLhs() == body.getArgument(0) &&
         compared.getRhs() == body.getArgument(1);
}

bool SortedRows::visitSort(stablehlo::SortOp op) {
  RankedTensorType type = getTensor(op.getInputs()[0]);
  bool isOfRows = type.getRank() == 1 && type.getDimSize(0) % numParts == 0 &&
                  isa<IntegerType>(type.getElementType()) &&
                  type.getElementTypeBitWidth() >= 32 && isAscending(op);
  Value key = op.getInputs()[0];
  Step step;
  step.operands.assign(op->getNumOperands(), 0);
  step.results = step.operands;
  Value positions;
  for (auto [operand, result] : llvm::zip(op.getInputs(), op->getResults())) {
    if (getIota(operand)) {
      positions = result;
    } else if (operand != key &&
               (getOrder(operand) || contents.contains(operand))) {
      isOfRows = false;
    }
  }
  if (auto found = contents.find(key); found != contents.end()) {
    // In which order the rows are sorted back.
    const Content &content = found->second;
    bool isBack = isOfRows && positions && !content.isInverse &&
                  stripShape(key) == content.base && op.getNumResults() == 2 &&
                  op->getResult(0).use_empty();
    if (isBack) {
      step.sort = content.sort;
      contents.insert({positions, Content{positions, content.sort, true}});
      steps.insert({op, step});
    }
    return isBack;
  }
  if (getOrder(key)) {
    return false;
  }
  if (!isOfRows || excluded.contains(op)) {
    return llvm::none_of(op.getInputs(), [&](Value operand) {
      return getOrder(operand) || contents.contains(operand);
    });
  }
  // What is computed again has the same order.
  stablehlo::SortOp same = findSort(stripShape(key));
  step.sort = same && same.getIsStable() && op.getIsStable() ? same : op;
  steps.insert({op, step});
  if (step.sort == op) {
    sorts.push_back(op);
  }
  for (Value result : op->getResults()) {
    set(result, RowOrder{step.sort, 0});
  }
  if (positions) {
    contents.insert({positions, Content{positions, step.sort, false}});
  }
  return true;
}

const SortedRows::Content *SortedRows::getContent(Operation *op) const {
  const Content *found = nullptr;
  for (Value operand : op->getOperands()) {
    auto content = contents.find(operand);
    if (content == contents.end()) {
      continue;
    }
    if (found && found->base != content->second.base) {
      return nullptr;
    }
    found = &content->second;
  }
  return found;
}

const std::vector<int64_t> *SortedRows::getNumbers(const Content &content,
                                                   Value value) {
  return numbers.try_emplace(content.base, content.base)
      .first->second.get(value);
}

/// Whether an operator computes numbers of positions and constants.
bool SortedRows::visitIndex(Operation *op) {
  const Content *found = getContent(op);
  if (!found || op->getNumResults() != 1) {
    return false;
  }
  Content content = *found;
  const std::vector<int64_t> *made = getNumbers(content, op->getResult(0));
  if (!made) {
    return false;
  }
  Value result = op->getResult(0);
  contents.insert({result, content});
  if (!content.isInverse) {
    for (Value operand : op->getOperands()) {
      if (auto order = getOrder(operand)) {
        // Dimensions of one element may have come in front.
        ArrayRef<int64_t> shape = getTensor(result).getShape();
        int64_t rows = getTensor(content.base).getDimSize(0);
        const auto *dim = llvm::find(shape, rows);
        if (dim != shape.end()) {
          set(result, RowOrder{order->sort, dim - shape.begin()});
        }
      }
    }
  }
  return true;
}

/// Whether a row has the same number where its part alone is sorted.
bool SortedRows::isSameInParts(const Content &content, Value value) {
  const std::vector<int64_t> *all = getNumbers(content, value);
  if (!all) {
    return false;
  }
  if (content.isInverse || all->size() == 1) {
    return llvm::all_equal(*all);
  }
  size_t size = all->size() / numParts;
  for (size_t index = size; index < all->size(); ++index) {
    if ((*all)[index] != (*all)[index - size]) {
      return false;
    }
  }
  return true;
}

/// Whether each part of the rows has indices of its own part of `numRows` rows,
/// counted from its first as the first part counts.
bool SortedRows::isIndexInParts(const Content &content, Value value,
                                int64_t numRows) {
  const std::vector<int64_t> *all = getNumbers(content, value);
  int64_t count = getTensor(content.base).getDimSize(0);
  if (!all || static_cast<int64_t>(all->size()) != count ||
      numRows % numParts != 0) {
    return false;
  }
  int64_t rows = numRows / numParts, size = count / numParts;
  for (int64_t index = 0; index < count; ++index) {
    int64_t own = (*all)[index] - index / size * rows;
    if (own < 0 || own >= rows || own != (*all)[index % size]) {
      return false;
    }
  }
  return true;
}

/// Whether a value is the positions themselves.
bool SortedRows::isEach(const Content &content, Value value) {
  const std::vector<int64_t> *all = getNumbers(content, value);
  int64_t next = 0;
  return all && llvm::all_of(*all, [&](int64_t one) { return one == next++; });
}

/// The dimension of what is gathered or written that runs over rows, where
/// there is one.
static std::optional<int64_t> getRowDim(Value value,
                                        ArrayRef<int64_t> windows) {
  std::optional<int64_t> found;
  for (int64_t dim = 0; dim < getTensor(value).getRank(); ++dim) {
    if (!llvm::is_contained(windows, dim)) {
      if (found) {
        return std::nullopt;
      }
      found = dim;
    }
  }
  return found;
}

bool SortedRows::visitGather(stablehlo::GatherOp op) {
  auto found = contents.find(op.getStartIndices());
  if (found == contents.end()) {
    return false;
  }
  const Content &content = found->second;
  auto dims = op.getDimensionNumbers();
  RankedTensorType from = getTensor(op.getOperand());
  std::optional<int64_t> rows = getRowDim(op.getResult(), dims.getOffsetDims());
  bool isOfRows =
      rows == 0 && dims.getCollapsedSliceDims() == ArrayRef<int64_t>{0} &&
      dims.getStartIndexMap() == ArrayRef<int64_t>{0} &&
      dims.getOperandBatchingDims().empty() &&
      op.getSliceSizes().drop_front() == from.getShape().drop_front() &&
      isIndexInParts(content, op.getStartIndices(), from.getDimSize(0));
  std::optional<RowOrder> order = getOrder(op.getOperand());
  RowOrder sorted{content.sort, 0};
  bool isExpected = content.isInverse ? order && *order == sorted : !order;
  if (!isOfRows || !isExpected || contents.contains(op.getOperand())) {
    return false;
  }
  Step step{{0, 0}, {*rows}, content.sort, {}, {}};
  steps.insert({op, step});
  return content.isInverse ||
         set(op.getResult(), RowOrder{content.sort, *rows});
}

/// Whether positions are written: of a permutation that makes its inverse.
static bool writesPositions(stablehlo::ScatterOp op) {
  Block &body = op.getUpdateComputation().front();
  return getIota(op.getUpdates()[0]) &&
         body.getTerminator()->getOperand(0) == body.getArgument(1) &&
         getTensor(op.getUpdates()[0]).getRank() == 1 &&
         getTensor(op.getInputs()[0]).getShape() ==
             getTensor(op.getUpdates()[0]).getShape();
}

bool SortedRows::visitScatter(stablehlo::ScatterOp op) {
  auto found = contents.find(op.getScatterIndices());
  if (found == contents.end() || op.getInputs().size() != 1) {
    return false;
  }
  Content content = found->second;
  auto dims = op.getScatterDimensionNumbers();
  Value into = op.getInputs()[0], update = op.getUpdates()[0];
  std::optional<int64_t> rows = getRowDim(update, dims.getUpdateWindowDims());
  bool isOfRows = rows == 0 &&
                  dims.getInsertedWindowDims() == ArrayRef<int64_t>{0} &&
                  dims.getScatterDimsToOperandDims() == ArrayRef<int64_t>{0} &&
                  dims.getInputBatchingDims().empty() &&
                  isIndexInParts(content, op.getScatterIndices(),
                                 getTensor(into).getDimSize(0));
  if (writesPositions(op) && !content.isInverse && isOfRows &&
      isEach(content, op.getScatterIndices())) {
    steps.insert({op, Step{{0, 0, 0}, {0}, content.sort, {}, {}}});
    Value made = op->getResult(0);
    return contents.insert({made, Content{made, content.sort, true}}).second;
  }
  if (!isOfRows || contents.contains(update) || contents.contains(into)) {
    return false;
  }
  std::optional<RowOrder> order = getOrder(update), before = getOrder(into);
  RowOrder sorted{content.sort, *rows}, whole{content.sort, 0};
  bool isExpected =
      content.isInverse
          ? !order && (before ? *before == whole : isUniformAlong(into, 0))
          : !before &&
                (order ? *order == sorted : isUniformAlong(update, *rows));
  if (!isExpected) {
    return false;
  }
  Step step{{0, 0, *rows}, {0}, content.sort, {}, {}};
  steps.insert({op, step});
  return !content.isInverse || set(op->getResult(0), whole);
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

stablehlo::SortOp SortedRows::findSort(Value numbers) const {
  for (stablehlo::SortOp sort : sorts) {
    if (numbers && stripShape(sort.getInputs()[0]) == numbers) {
      return sort;
    }
  }
  return {};
}

/// Whether an operator asks of each position if it stands in front of the end
/// of a group; true as well if it does nothing of the kind with sorted rows.
bool SortedRows::visitPositions(stablehlo::CompareOp op) {
  using Direction = stablehlo::ComparisonDirection;
  Direction direction = op.getComparisonDirection();
  for (unsigned totals : {0, 1}) {
    stablehlo::IotaOp iota = getIota(op->getOperand(1 - totals));
    auto spread =
        op->getOperand(totals).getDefiningOp<stablehlo::BroadcastInDimOp>();
    // position < total, total > position; and their opposites.
    bool isEnd = totals
                     ? direction == Direction::LT || direction == Direction::GE
                     : direction == Direction::GT || direction == Direction::LE;
    if (!iota || !spread || !isEnd) {
      continue;
    }
    auto dim = static_cast<int64_t>(iota.getIotaDimension());
    std::optional<PrefixCounts> prefixes = getPrefixCounts(spread.getOperand());
    stablehlo::SortOp sort =
        prefixes ? findSort(getCounted(prefixes->counts)) : stablehlo::SortOp();
    if (!sort || !isUniformAlong(spread, dim) ||
        getTensor(iota).getDimSize(dim) !=
            getTensor(sort.getInputs()[0]).getDimSize(0)) {
      continue;
    }
    Step step{{}, {dim}, sort, totals, std::move(prefixes)};
    steps.insert({op, step});
    wanted.insert(sort);
    return set(op.getResult(), RowOrder{sort, dim});
  }
  return false;
}

/// Of products in groups of rows, those with one row of sizes.
bool SortedRows::visitGroups(chlo::RaggedDotOp op) {
  auto dims = op.getRaggedDotDimensionNumbers();
  std::optional<RowOrder> left = getOrder(op.getLhs()),
                          right = getOrder(op.getRhs());
  stablehlo::SortOp sort = findSort(getCounted(op.getGroupSizes()));
  if (!left || left->sort != sort ||
      dims.getLhsRaggedDimensions() != ArrayRef<int64_t>{left->dim} ||
      getTensor(op.getGroupSizes()).getRank() != 1) {
    return false;
  }
  Step step{{left->dim, -1, -1}, {-1}, sort, {}, {}};
  wanted.insert(sort);
  ArrayRef<int64_t> contracted = dims.getLhsContractingDimensions();
  const auto *place = llvm::find(contracted, left->dim);
  if (place != contracted.end()) {
    int64_t dim =
        dims.getRhsContractingDimensions()[place - contracted.begin()];
    step.operands[1] = dim;
    steps.insert({op, step});
    return right && *right == RowOrder{sort, dim};
  }
  if (right || llvm::is_contained(dims.getLhsBatchingDimensions(), left->dim)) {
    return false;
  }
  int64_t at = dims.getLhsBatchingDimensions().size();
  for (int64_t dim = 0; dim < left->dim; ++dim) {
    at += !llvm::is_contained(dims.getLhsBatchingDimensions(), dim) &&
          !llvm::is_contained(contracted, dim);
  }
  step.results[0] = at;
  steps.insert({op, step});
  return set(op.getResult(), RowOrder{sort, at});
}

} // namespace mlir::alpa
