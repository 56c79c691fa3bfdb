//===- SortedParts.cpp - Rows that are sorted in parts --------------------===//

#include "cpp/transforms/SortedParts.h"

#include "cpp/transforms/MicroBatchSplitting.h"
#include "cpp/transforms/SortedRows.h"
#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/DataFlow.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::alpa {

namespace {

/// Writes the steps of sorted rows as operators on the mesh `time`.
class PartWriting {
public:
  PartWriting(MLIRContext *context, int64_t numParts)
      : builder(context), numParts(numParts) {}

  void write(Operation *op, const SortedRows::Step &step);

private:
  using Body = function_ref<SmallVector<Value>(ValueRange)>;

  void writeSame(Operation *op, const SortedRows::Step &step);
  void writePositions(stablehlo::CompareOp op, const SortedRows::Step &step);
  void writeGroups(chlo::RaggedDotOp op, const SortedRows::Step &step);
  ManualOp makeManual(Location location, TypeRange types, ValueRange operands,
                      ArrayRef<int64_t> ins, ArrayRef<int64_t> outs, Body body);
  RankedTensorType getPart(Type type, int64_t dim) const;
  Value spread(Value value, RankedTensorType type, int64_t dim);
  Value raise(Value key);
  Value compare(Value left, Value right,
                stablehlo::ComparisonDirection direction);

  OpBuilder builder;
  int64_t numParts;
  /// What each sort makes of the numbers that it sorts by.
  DenseMap<Operation *, Value> keys;
};

} // namespace

/// The sum of a tensor over its first dimension.
static Value sumRows(OpBuilder &builder, Value value) {
  auto type = cast<RankedTensorType>(value.getType());
  auto element = RankedTensorType::get({}, type.getElementType());
  Location location = value.getLoc();
  auto zero = stablehlo::ConstantOp::create(
      builder, location, cast<ElementsAttr>(builder.getZeroAttr(element)));
  auto made = stablehlo::ReduceOp::create(
      builder, location, TypeRange{type.clone(type.getShape().drop_front())},
      value, zero.getResult(), ArrayRef<int64_t>{0});
  OpBuilder::InsertionGuard guard(builder);
  Block &body = made.getBody().emplaceBlock();
  body.addArguments({element, element}, {location, location});
  builder.setInsertionPointToStart(&body);
  auto sum = stablehlo::AddOp::create(builder, location, body.getArgument(0),
                                      body.getArgument(1));
  stablehlo::ReturnOp::create(builder, location, sum.getResult());
  return made.getResult(0);
}

RankedTensorType PartWriting::getPart(Type type, int64_t dim) const {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> shape(tensor.getShape());
  if (dim >= 0) {
    shape[dim] /= numParts;
  }
  return tensor.clone(shape);
}

ManualOp PartWriting::makeManual(Location location, TypeRange types,
                                 ValueRange operands, ArrayRef<int64_t> ins,
                                 ArrayRef<int64_t> outs, Body body) {
  MLIRContext *context = builder.getContext();
  auto time =
      MeshAttr::get(context, {StringAttr::get(context, "time")}, {numParts});
  auto getEntries = [&](TypeRange values, ArrayRef<int64_t> parts) {
    SmallVector<Attribute> entries;
    for (auto [type, part] : llvm::zip_equal(values, parts)) {
      SmallVector<Attribute> dims(cast<RankedTensorType>(type).getRank(),
                                  builder.getArrayAttr({}));
      if (part >= 0) {
        dims[part] = builder.getStrArrayAttr({"time"});
      }
      entries.push_back(builder.getArrayAttr(dims));
    }
    return builder.getArrayAttr(entries);
  };
  auto made = ManualOp::create(builder, location, types, operands, time,
                               getEntries(operands.getTypes(), ins),
                               getEntries(types, outs));
  OpBuilder::InsertionGuard guard(builder);
  Block &block = made.getBody().emplaceBlock();
  for (auto [operand, part] : llvm::zip_equal(operands, ins)) {
    block.addArgument(getPart(operand.getType(), part), operand.getLoc());
  }
  builder.setInsertionPointToStart(&block);
  SmallVector<Value> results = body(block.getArguments());
  YieldOp::create(builder, location, results);
  return made;
}

void PartWriting::write(Operation *op, const SortedRows::Step &step) {
  builder.setInsertionPoint(op);
  if (auto compared = dyn_cast<stablehlo::CompareOp>(op)) {
    writePositions(compared, step);
  } else if (auto groups = dyn_cast<chlo::RaggedDotOp>(op)) {
    writeGroups(groups, step);
  } else {
    writeSame(op, step);
  }
  op->erase();
}

/// The operator as it is, on a part; positions are counted in it.
void PartWriting::writeSame(Operation *op, const SortedRows::Step &step) {
  SmallVector<Value> operands;
  SmallVector<int64_t> ins;
  for (auto [operand, part] :
       llvm::zip_equal(op->getOperands(), step.operands)) {
    if (!getIota(operand)) {
      operands.push_back(operand);
      ins.push_back(part);
    }
  }
  ManualOp made =
      makeManual(op->getLoc(), op->getResultTypes(), operands, ins,
                 step.results, [&](ValueRange arguments) {
                   IRMapping mapping;
                   mapping.map(operands, arguments);
                   for (Value operand : op->getOperands()) {
                     if (stablehlo::IotaOp iota = getIota(operand)) {
                       auto own = stablehlo::IotaOp::create(
                           builder, iota.getLoc(), getPart(iota.getType(), 0),
                           iota.getIotaDimension());
                       mapping.map(operand, own.getResult());
                     }
                   }
                   Operation *part = builder.clone(*op, mapping);
                   for (auto [result, dim] :
                        llvm::zip_equal(part->getResults(), step.results)) {
                     result.setType(getPart(result.getType(), dim));
                   }
                   return SmallVector<Value>(part->getResults());
                 });
  if (op == step.sort) {
    keys[op] = made->getResult(0);
  }
  op->replaceAllUsesWith(made->getResults());
}

Value PartWriting::spread(Value value, RankedTensorType type, int64_t dim) {
  auto element = cast<RankedTensorType>(value.getType()).getElementType();
  return stablehlo::BroadcastInDimOp::create(builder, value.getLoc(),
                                             type.clone(element), value,
                                             ArrayRef<int64_t>{dim});
}

Value PartWriting::compare(Value left, Value right,
                           stablehlo::ComparisonDirection direction) {
  MLIRContext *context = builder.getContext();
  auto type = cast<RankedTensorType>(left.getType());
  auto kind = type.getElementType().isUnsignedInteger()
                  ? stablehlo::ComparisonType::UNSIGNED
                  : stablehlo::ComparisonType::SIGNED;
  return stablehlo::CompareOp::create(
      builder, left.getLoc(), type.clone(builder.getI1Type()), left, right,
      stablehlo::ComparisonDirectionAttr::get(context, direction),
      stablehlo::ComparisonTypeAttr::get(context, kind));
}

/// Numbers below 0 are counted as 0.
Value PartWriting::raise(Value key) {
  auto type = cast<RankedTensorType>(key.getType());
  auto zero = stablehlo::ConstantOp::create(
      builder, key.getLoc(), cast<ElementsAttr>(builder.getZeroAttr(type)));
  return stablehlo::MaxOp::create(builder, key.getLoc(), key, zero.getResult());
}

/// A position stands in front of the end of a group if its number is in front
/// of the first that is not counted there.
void PartWriting::writePositions(stablehlo::CompareOp op,
                                 const SortedRows::Step &step) {
  int64_t dim = step.results[0];
  Value key = keys.lookup(step.sort);
  auto totals =
      op->getOperand(*step.totals).getDefiningOp<stablehlo::BroadcastInDimOp>();
  ManualOp made = makeManual(
      op.getLoc(), op->getResultTypes(), key, {0}, {dim},
      [&](ValueRange arguments) -> SmallVector<Value> {
        auto type = getPart(op.getType(), dim);
        auto number = cast<RankedTensorType>(key.getType()).getElementType();
        auto from = cast<RankedTensorType>(totals.getOperand().getType());
        SmallVector<Attribute> bounds;
        for (int64_t bound : step.prefixes->bounds) {
          bounds.push_back(IntegerAttr::get(number, bound));
        }
        Value ends = stablehlo::ConstantOp::create(
            builder, op.getLoc(),
            DenseElementsAttr::get(from.clone(number), bounds));
        ends = stablehlo::BroadcastInDimOp::create(
            builder, op.getLoc(), type.clone(number), ends,
            totals.getBroadcastDimensions());
        Value numbers = spread(raise(arguments[0]), type, dim);
        auto direction = op.getComparisonDirection();
        Value left = *step.totals ? numbers : ends;
        Value right = *step.totals ? ends : numbers;
        return {compare(left, right, direction)};
      });
  op->replaceAllUsesWith(made->getResults());
}

/// The product of a part, with the sizes that groups have there. Those of a sum
/// over rows are added up behind it.
void PartWriting::writeGroups(chlo::RaggedDotOp op,
                              const SortedRows::Step &step) {
  Location location = op.getLoc();
  auto sizes = cast<RankedTensorType>(op.getGroupSizes().getType());
  auto type = cast<RankedTensorType>(op.getType());
  bool isSum = step.results[0] < 0;
  SmallVector<int64_t> shape(type.getShape());
  if (isSum) {
    shape.insert(shape.begin(), numParts);
  }
  Value key = keys.lookup(step.sort);
  ManualOp made = makeManual(
      location, TypeRange{type.clone(shape)}, {op.getLhs(), op.getRhs(), key},
      {step.operands[0], step.operands[1], 0}, {isSum ? 0 : step.results[0]},
      [&](ValueRange arguments) -> SmallVector<Value> {
        Value numbers = raise(arguments[2]);
        auto rows = cast<RankedTensorType>(numbers.getType());
        auto each = RankedTensorType::get(
            {rows.getDimSize(0), sizes.getDimSize(0)}, rows.getElementType());
        auto groups = stablehlo::IotaOp::create(builder, location, each, 1);
        Value equal = compare(spread(numbers, each, 0), groups,
                              stablehlo::ComparisonDirection::EQ);
        Value counted = stablehlo::ConvertOp::create(
            builder, location, each.clone(sizes.getElementType()), equal);
        Value own = sumRows(builder, counted);
        Value product = chlo::RaggedDotOp::create(
            builder, location, getPart(type, isSum ? -1 : step.results[0]),
            arguments[0], arguments[1], own,
            op.getRaggedDotDimensionNumbersAttr(), op.getPrecisionConfigAttr());
        if (isSum) {
          shape[0] = 1;
          product = stablehlo::ReshapeOp::create(builder, location,
                                                 type.clone(shape), product);
        }
        return {product};
      });
  Value result = made->getResult(0);
  if (isSum) {
    result = sumRows(builder, result);
  }
  op.getResult().replaceAllUsesWith(result);
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
