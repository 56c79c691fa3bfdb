//===- SortedParts.cpp - Rows that are sorted in parts --------------------===//

#include "cpp/transforms/SortedParts.h"

#include "cpp/transforms/Erasure.h"
#include "cpp/transforms/RowParts.h"
#include "cpp/transforms/SortedRows.h"
#include "dialects/alpa/DataFlow.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::alpa {

namespace {

/// Writes the steps of sorted rows as operators that have the parts for a
/// batch.
class PartWriting {
public:
  PartWriting(MLIRContext *context, int64_t numParts)
      : builder(context), numParts(numParts) {}

  void write(Operation *op, const SortedRows::Step &step);

private:
  Value writeGather(stablehlo::GatherOp op);
  Value writeScatter(stablehlo::ScatterOp op);
  Value writePositions(stablehlo::CompareOp op, const SortedRows::Step &step);
  Value writeGroups(chlo::RaggedDotOp op, const SortedRows::Step &step);
  void writeSort(stablehlo::SortOp op, const SortedRows::Step &step);
  Value countGroups(Value key, RankedTensorType sizes);

  Value split(Value value, int64_t dim = 0);
  Value join(Value value, Type type);
  Value reshape(Value value, ArrayRef<int64_t> shape);
  Value getIndices(Value indices);
  Value spread(Value value, RankedTensorType type, ArrayRef<int64_t> dims);
  Value raise(Value key);
  Value compare(Value left, Value right,
                stablehlo::ComparisonDirection direction);
  Value sum(Value value, int64_t dim);
  Value transpose(Value value, ArrayRef<int64_t> order);
  Value splitInFront(Value value, int64_t rows);
  Value joinFromFront(Value parts, Type type, int64_t rows);
  Value repeat(Value value, int64_t at);

  OpBuilder builder;
  int64_t numParts;
  /// What each sort makes of the numbers that it sorts by.
  DenseMap<Operation *, Value> keys;
};

} // namespace

static RankedTensorType getTensor(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Dimensions behind one that is inserted.
static SmallVector<int64_t> shiftFrom(ArrayRef<int64_t> dims, int64_t at) {
  return llvm::map_to_vector(
      dims, [&](int64_t dim) { return dim >= at ? dim + 1 : dim; });
}

void PartWriting::write(Operation *op, const SortedRows::Step &step) {
  builder.setInsertionPoint(op);
  if (auto sort = dyn_cast<stablehlo::SortOp>(op)) {
    writeSort(sort, step);
  } else {
    Value made =
        llvm::TypeSwitch<Operation *, Value>(op)
            .Case([&](stablehlo::GatherOp each) { return writeGather(each); })
            .Case([&](stablehlo::ScatterOp each) { return writeScatter(each); })
            .Case([&](stablehlo::CompareOp each) {
              return writePositions(each, step);
            })
            .Case([&](chlo::RaggedDotOp each) {
              return writeGroups(each, step);
            });
    op->getResult(0).replaceAllUsesWith(made);
  }
  op->erase();
}

Value PartWriting::reshape(Value value, ArrayRef<int64_t> shape) {
  return stablehlo::ReshapeOp::create(builder, value.getLoc(),
                                      getTensor(value).clone(shape), value);
}

/// Parts, and rows of each, in place of a dimension of rows.
Value PartWriting::split(Value value, int64_t dim) {
  return splitRows(builder, value, dim, numParts);
}

Value PartWriting::join(Value value, Type type) {
  return reshape(value, cast<RankedTensorType>(type).getShape());
}

/// Rows of parts, one index each.
Value PartWriting::getIndices(Value indices) {
  int64_t rows = getTensor(indices).getDimSize(0) / numParts;
  return reshape(indices, {numParts, rows, 1});
}

Value PartWriting::spread(Value value, RankedTensorType type,
                          ArrayRef<int64_t> dims) {
  return stablehlo::BroadcastInDimOp::create(
      builder, value.getLoc(), type.clone(getTensor(value).getElementType()),
      value, dims);
}

/// Numbers below 0 are counted as 0.
Value PartWriting::raise(Value key) {
  auto zero = stablehlo::ConstantOp::create(
      builder, key.getLoc(),
      cast<ElementsAttr>(builder.getZeroAttr(getTensor(key))));
  return stablehlo::MaxOp::create(builder, key.getLoc(), key, zero.getResult());
}

Value PartWriting::compare(Value left, Value right,
                           stablehlo::ComparisonDirection direction) {
  MLIRContext *context = builder.getContext();
  RankedTensorType type = getTensor(left);
  auto kind = type.getElementType().isUnsignedInteger()
                  ? stablehlo::ComparisonType::UNSIGNED
                  : stablehlo::ComparisonType::SIGNED;
  return stablehlo::CompareOp::create(
      builder, left.getLoc(), type.clone(builder.getI1Type()), left, right,
      stablehlo::ComparisonDirectionAttr::get(context, direction),
      stablehlo::ComparisonTypeAttr::get(context, kind));
}

Value PartWriting::sum(Value value, int64_t dim) {
  RankedTensorType type = getTensor(value);
  auto element = RankedTensorType::get({}, type.getElementType());
  SmallVector<int64_t> shape(type.getShape());
  shape.erase(shape.begin() + dim);
  Location location = value.getLoc();
  auto zero = stablehlo::ConstantOp::create(
      builder, location, cast<ElementsAttr>(builder.getZeroAttr(element)));
  auto made = stablehlo::ReduceOp::create(
      builder, location, TypeRange{type.clone(shape)}, value, zero.getResult(),
      ArrayRef<int64_t>{dim});
  OpBuilder::InsertionGuard guard(builder);
  Block &body = made.getBody().emplaceBlock();
  body.addArguments({element, element}, {location, location});
  builder.setInsertionPointToStart(&body);
  auto added = stablehlo::AddOp::create(builder, location, body.getArgument(0),
                                        body.getArgument(1));
  stablehlo::ReturnOp::create(builder, location, added.getResult());
  return made.getResult(0);
}

/// Positions are counted in a part.
void PartWriting::writeSort(stablehlo::SortOp op,
                            const SortedRows::Step &step) {
  Operation *made = op->cloneWithoutRegions();
  made->getRegion(0).takeBody(op.getComparator());
  for (auto [index, operand] : llvm::enumerate(op.getInputs())) {
    Value part = split(operand);
    if (getIota(operand)) {
      part = stablehlo::IotaOp::create(builder, operand.getLoc(),
                                       part.getType(), 1);
    }
    made->setOperand(index, part);
    made->getResult(index).setType(part.getType());
  }
  builder.insert(made);
  cast<stablehlo::SortOp>(made).setDimension(1);
  for (auto [result, part] : llvm::zip(op->getResults(), made->getResults())) {
    result.replaceAllUsesWith(join(part, result.getType()));
  }
  if (step.sort == op) {
    keys[op] = join(made->getResult(0), op->getResult(0).getType());
  }
}

Value PartWriting::writeGather(stablehlo::GatherOp op) {
  auto dims = op.getDimensionNumbers();
  auto parts = stablehlo::GatherDimensionNumbersAttr::get(
      op.getContext(), shiftFrom(dims.getOffsetDims(), 0), {1}, {0}, {0}, {1},
      2);
  SmallVector<int64_t> sizes(op.getSliceSizes());
  sizes.insert(sizes.begin(), 1);
  SmallVector<int64_t> shape(getTensor(op).getShape());
  shape[0] /= numParts;
  shape.insert(shape.begin(), numParts);
  Value made = stablehlo::GatherOp::create(
      builder, op.getLoc(), getTensor(op).clone(shape), split(op.getOperand()),
      getIndices(op.getStartIndices()), parts, sizes, op.getIndicesAreSorted());
  return join(made, op.getType());
}

Value PartWriting::writeScatter(stablehlo::ScatterOp op) {
  auto dims = op.getScatterDimensionNumbers();
  auto parts = stablehlo::ScatterDimensionNumbersAttr::get(
      op.getContext(), shiftFrom(dims.getUpdateWindowDims(), 0), {1}, {0}, {0},
      {1}, 2);
  Value update = op.getUpdates()[0];
  if (getIota(update)) {
    Value own = split(update);
    update =
        stablehlo::IotaOp::create(builder, update.getLoc(), own.getType(), 1);
  } else {
    update = split(update);
  }
  auto made = cast<stablehlo::ScatterOp>(op->cloneWithoutRegions());
  made.getUpdateComputation().takeBody(op.getUpdateComputation());
  Value into = split(op.getInputs()[0]);
  made->setOperands({into, getIndices(op.getScatterIndices()), update});
  made->getResult(0).setType(into.getType());
  made.setScatterDimensionNumbersAttr(parts);
  builder.insert(made);
  return join(made->getResult(0), op->getResult(0).getType());
}

/// A position stands in front of the end of a group if its number is in front
/// of the first that is not counted there.
Value PartWriting::writePositions(stablehlo::CompareOp op,
                                  const SortedRows::Step &step) {
  auto totals =
      op->getOperand(*step.totals).getDefiningOp<stablehlo::BroadcastInDimOp>();
  Value key = keys.lookup(step.sort);
  Type number = getTensor(key).getElementType();
  SmallVector<Attribute> bounds;
  for (int64_t bound : step.prefixes->bounds) {
    bounds.push_back(IntegerAttr::get(number, bound));
  }
  Value ends = stablehlo::ConstantOp::create(
      builder, op.getLoc(),
      DenseElementsAttr::get(getTensor(totals.getOperand()).clone(number),
                             bounds));
  ends = spread(ends, getTensor(op), totals.getBroadcastDimensions());
  Value numbers = spread(raise(key), getTensor(op), step.results[0]);
  Value left = *step.totals ? numbers : ends;
  Value right = *step.totals ? ends : numbers;
  return compare(left, right, op.getComparisonDirection());
}

/// How many rows of each part have each number.
Value PartWriting::countGroups(Value key, RankedTensorType sizes) {
  Value numbers = split(raise(key));
  RankedTensorType rows = getTensor(numbers);
  auto each =
      RankedTensorType::get({numParts, rows.getDimSize(1), sizes.getDimSize(0)},
                            rows.getElementType());
  Location location = key.getLoc();
  auto groups = stablehlo::IotaOp::create(builder, location, each, 2);
  Value equal = compare(spread(numbers, each, {0, 1}), groups,
                        stablehlo::ComparisonDirection::EQ);
  Value counted = stablehlo::ConvertOp::create(
      builder, location, each.clone(sizes.getElementType()), equal);
  return sum(counted, 1);
}

Value PartWriting::transpose(Value value, ArrayRef<int64_t> order) {
  SmallVector<int64_t> shape = llvm::map_to_vector(
      order, [&](int64_t dim) { return getTensor(value).getDimSize(dim); });
  return stablehlo::TransposeOp::create(
      builder, value.getLoc(), getTensor(value).clone(shape), value, order);
}

/// Parts in front of everything else.
Value PartWriting::splitInFront(Value value, int64_t rows) {
  SmallVector<int64_t> order = {rows};
  for (int64_t dim = 0; dim <= getTensor(value).getRank(); ++dim) {
    if (dim != rows) {
      order.push_back(dim);
    }
  }
  Value parts = split(value, rows);
  return rows == 0 ? parts : transpose(parts, order);
}

/// From parts in front to a dimension of rows.
Value PartWriting::joinFromFront(Value parts, Type type, int64_t rows) {
  SmallVector<int64_t> order;
  for (int64_t dim = 1; dim < getTensor(parts).getRank(); ++dim) {
    if (dim == rows + 1) {
      order.push_back(0);
    }
    order.push_back(dim);
  }
  return join(rows == 0 ? parts : transpose(parts, order), type);
}

/// With a dimension of parts at `at`, where a value is the same for all.
Value PartWriting::repeat(Value value, int64_t at) {
  SmallVector<int64_t> shape(getTensor(value).getShape());
  SmallVector<int64_t> dims = llvm::to_vector(
      llvm::seq<int64_t>(0, static_cast<int64_t>(shape.size())));
  shape.insert(shape.begin() + at, numParts);
  return spread(value, getTensor(value).clone(shape), shiftFrom(dims, at));
}

/// The product of each part, with the sizes that groups have there. Matrices of
/// groups are the same for all; of gradients of these the parts are added up.
Value PartWriting::writeGroups(chlo::RaggedDotOp op,
                               const SortedRows::Step &step) {
  auto dims = op.getRaggedDotDimensionNumbers();
  int64_t made = step.results[0], others = step.operands[1];
  bool isSum = made < 0;
  int64_t at = isSum ? 0 : 1;
  Value lhs = splitInFront(op.getLhs(), step.operands[0]);
  Value rhs =
      isSum ? splitInFront(op.getRhs(), others) : repeat(op.getRhs(), at);
  SmallVector<int64_t> leftBatch =
      shiftFrom(dims.getLhsBatchingDimensions(), 0);
  SmallVector<int64_t> rightBatch =
      shiftFrom(dims.getRhsBatchingDimensions(), at);
  leftBatch.insert(leftBatch.begin(), 0);
  rightBatch.insert(rightBatch.begin(), at);
  auto numbers = chlo::RaggedDotDimensionNumbersAttr::get(
      op.getContext(), leftBatch, rightBatch,
      shiftFrom(dims.getLhsContractingDimensions(), 0),
      shiftFrom(dims.getRhsContractingDimensions(), at),
      shiftFrom(dims.getLhsRaggedDimensions(), 0),
      shiftFrom(dims.getRhsGroupDimensions(), at));
  RankedTensorType type = getTensor(op);
  SmallVector<int64_t> shape(type.getShape());
  if (!isSum) {
    shape[made] /= numParts;
  }
  shape.insert(shape.begin() + (isSum ? 1 : 0), numParts);
  Value sizes =
      countGroups(keys.lookup(step.sort), getTensor(op.getGroupSizes()));
  Value parts = chlo::RaggedDotOp::create(builder, op.getLoc(),
                                          type.clone(shape), lhs, rhs, sizes,
                                          numbers, op.getPrecisionConfigAttr());
  return isSum ? sum(parts, 1) : joinFromFront(parts, type, made);
}

/// The blocks of a step: its own, and those of its loops and branches.
static SmallVector<Block *> getBlocks(func::FuncOp function) {
  SmallVector<Block *> blocks = {&function.getBody().front()};
  function.walk([&](DataFlowOpInterface op) {
    for (Region &region : op->getRegions()) {
      for (Block &block : region) {
        blocks.push_back(&block);
      }
    }
  });
  return blocks;
}

bool hasSortedRows(func::FuncOp function, int64_t numParts) {
  return llvm::any_of(getBlocks(function), [&](Block *block) {
    return !SortedRows(*block, numParts).getSteps().empty();
  });
}

void sortInParts(func::FuncOp function, int64_t numParts) {
  for (Block *block : getBlocks(function)) {
    SortedRows rows(*block, numParts);
    PartWriting writing(function.getContext(), numParts);
    for (auto &[op, step] : rows.getSteps()) {
      writing.write(op, step);
    }
    eraseUnused(*block);
  }
}

} // namespace mlir::alpa
