//===- PassLoop.cpp - A loop over micro-batches ---------------------------===//

#include "cpp/transforms/PassLoop.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/transforms/MicroBatchStates.h"
#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/ShardingRule.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::alpa {

namespace {

class PassLoop {
public:
  PassLoop(OpBuilder &builder, func::FuncOp function, ValueRange given,
           int64_t count)
      : builder(builder), function(function), block(function.getBody().front()),
        given(given), count(count) {}

  FailureOr<SmallVector<Value>> run() {
    mapArguments();
    if (failed(sort())) {
      return failure();
    }
    emitOthers(/*areBehind=*/false);
    if (!joins.empty()) {
      emitLoop();
    }
    emitOthers(/*areBehind=*/true);
    return llvm::map_to_vector(
        block.getTerminator()->getOperands(),
        [&](Value value) { return mapping.lookup(value); });
  }

private:
  std::optional<int64_t> getNumber(BlockArgument argument, StringRef kind) {
    auto number =
        function.getArgAttrOfType<IntegerAttr>(argument.getArgNumber(), kind);
    return number ? std::optional(number.getInt()) : std::nullopt;
  }

  void mapArguments() {
    for (BlockArgument argument : block.getArguments()) {
      if (auto index = getNumber(argument, kInputAttrName)) {
        mapping.map(argument, given[*index]);
      } else {
        ofOne.insert(argument);
      }
    }
  }

  /// Tells apart what is of one micro-batch, what is behind the joins, and what
  /// is the same for all.
  LogicalResult sort() {
    llvm::DenseSet<Value> joined;
    for (Operation &op : block.without_terminator()) {
      bool isOfOne = false, isBehind = false;
      forEachUsedValue(&op, [&](Value value) {
        isOfOne |= ofOne.contains(value);
        isBehind |= joined.contains(value);
      });
      if (isBehind && (isOfOne || isJoin(&op))) {
        return op.emitOpError()
               << "needs a sum over the micro-batches before the last one is "
                  "through";
      }
      if (isJoin(&op)) {
        joins.push_back(&op);
      } else if (isOfOne) {
        turn.push_back(&op);
        ofOne.insert(op.result_begin(), op.result_end());
      } else if (isBehind) {
        behind.insert(&op);
      }
      if (isJoin(&op) || isBehind) {
        joined.insert(op.result_begin(), op.result_end());
      }
    }
    return success();
  }

  void emitOthers(bool areBehind) {
    llvm::DenseSet<Operation *> inLoop(turn.begin(), turn.end());
    inLoop.insert(joins.begin(), joins.end());
    for (Operation &op : block.without_terminator()) {
      if (inLoop.contains(&op) || behind.contains(&op) != areBehind) {
        continue;
      }
      Operation *made = builder.clone(op, mapping);
      if (getProductFlops(&op) > 0) {
        setOnce(made);
      }
    }
  }

  /// The step does not cut it once more.
  void setOnce(Operation *op) {
    op->setAttr(kOnceAttrName, builder.getUnitAttr());
  }

  static RankedTensorType getType(Value value) {
    return cast<RankedTensorType>(value.getType());
  }

  RankedTensorType getStacked(RankedTensorType part) const {
    SmallVector<int64_t> shape = {count};
    llvm::append_range(shape, part.getShape());
    return RankedTensorType::get(shape, part.getElementType());
  }

  Value getInteger(Location loc, int64_t value) {
    Type type = RankedTensorType::get({}, builder.getI32Type());
    auto number = DenseElementsAttr::get(
        cast<ShapedType>(type),
        builder.getI32IntegerAttr(static_cast<int32_t>(value)));
    return stablehlo::ConstantOp::create(builder, loc, number);
  }

  /// What every turn has: values from outside that are no constants, the parts
  /// of the batch behind each other.
  void findCarried() {
    auto carry = [&](Value value) {
      Operation *maker = value.getDefiningOp();
      if (!ofOne.contains(value) &&
          !(maker && matchPattern(maker, m_Constant()))) {
        same.insert(value);
      }
    };
    for (Operation *op : turn) {
      forEachUsedValue(op, carry);
    }
    for (Operation *join : joins) {
      carry(join->getOperand(0));
    }
    for (BlockArgument argument : block.getArguments()) {
      if (getNumber(argument, kBatchAttrName)) {
        parts.push_back(argument);
      }
    }
  }

  Value getStart(Operation *join) {
    RankedTensorType type = getType(join->getOperand(0));
    if (isa<CollectOp>(join)) {
      type = getStacked(type);
    }
    auto scalar = RankedTensorType::get({}, type.getElementType());
    Value zero = stablehlo::ConstantOp::create(builder, join->getLoc(),
                                               getNeutralOfSum(scalar));
    return stablehlo::BroadcastInDimOp::create(
        builder, join->getLoc(), type, zero, builder.getDenseI64ArrayAttr({}));
  }

  void emitLoop() {
    findCarried();
    Location loc = joins.front()->getLoc();
    SmallVector<Value> carried = {getInteger(loc, 0)};
    for (BlockArgument part : parts) {
      auto stacked = stablehlo::ReshapeOp::create(
          builder, part.getLoc(), getStacked(getType(part)),
          given[*getNumber(part, kBatchAttrName)]);
      setOnce(stacked);
      carried.push_back(stacked);
    }
    for (Value value : same) {
      carried.push_back(mapping.lookup(value));
    }
    for (Operation *join : joins) {
      carried.push_back(getStart(join));
    }
    auto loop = stablehlo::WhileOp::create(
        builder, loc, TypeRange(ValueRange(carried)), carried);
    setOnce(loop);
    emitCondition(loop);
    emitBody(loop);
    for (auto [join, made] :
         llvm::zip_equal(joins, loop.getResults().take_back(joins.size()))) {
      auto collect = dyn_cast<CollectOp>(join);
      mapping.map(join->getResult(0), collect ? unstack(collect, made) : made);
    }
  }

  Block &addBlock(Region &region, stablehlo::WhileOp loop) {
    Block &made = region.emplaceBlock();
    for (Value value : loop.getOperands()) {
      made.addArgument(value.getType(), value.getLoc());
    }
    builder.setInsertionPointToStart(&made);
    return made;
  }

  void emitCondition(stablehlo::WhileOp loop) {
    OpBuilder::InsertionGuard guard(builder);
    Block &condition = addBlock(loop.getCond(), loop);
    MLIRContext *context = builder.getContext();
    Value goesOn = stablehlo::CompareOp::create(
        builder, loop.getLoc(), RankedTensorType::get({}, builder.getI1Type()),
        condition.getArgument(0), getInteger(loop.getLoc(), count),
        stablehlo::ComparisonDirectionAttr::get(
            context, stablehlo::ComparisonDirection::LT),
        stablehlo::ComparisonTypeAttr::get(context,
                                           stablehlo::ComparisonType::SIGNED));
    stablehlo::ReturnOp::create(builder, loop.getLoc(), goesOn);
  }

  void emitBody(stablehlo::WhileOp loop) {
    OpBuilder::InsertionGuard guard(builder);
    Location loc = loop.getLoc();
    Block &body = addBlock(loop.getBody(), loop);
    Value number = body.getArgument(0);
    IRMapping inner;
    SmallVector<Value> returned = {
        stablehlo::AddOp::create(builder, loc, number, getInteger(loc, 1))};
    llvm::append_range(
        returned, body.getArguments().slice(1, parts.size() + same.size()));
    for (BlockArgument argument : block.getArguments()) {
      if (getNumber(argument, kMicroBatchAttrName)) {
        inner.map(argument, stablehlo::ConvertOp::create(
                                builder, loc, argument.getType(), number));
      }
    }
    for (auto [index, part] : llvm::enumerate(parts)) {
      inner.map(part, take(body.getArgument(1 + index), getType(part), number));
    }
    for (auto [index, value] : llvm::enumerate(same)) {
      inner.map(value, body.getArgument(1 + parts.size() + index));
    }
    copyConstants(inner);
    for (Operation *op : turn) {
      builder.clone(*op, inner);
    }
    unsigned first = body.getNumArguments() - joins.size();
    for (auto [index, join] : llvm::enumerate(joins)) {
      Value before = body.getArgument(first + index);
      Value own = inner.lookup(join->getOperand(0));
      returned.push_back(
          isa<CollectOp>(join)
              ? put(before, own, number)
              : stablehlo::AddOp::create(builder, join->getLoc(), before, own));
    }
    stablehlo::ReturnOp::create(builder, loc, returned);
  }

  void copyConstants(IRMapping &inner) {
    auto copy = [&](Value value) {
      if (!ofOne.contains(value) && !inner.contains(value)) {
        builder.clone(*value.getDefiningOp(), inner);
      }
    };
    for (Operation *op : turn) {
      forEachUsedValue(op, copy);
    }
    for (Operation *join : joins) {
      copy(join->getOperand(0));
    }
  }

  SmallVector<Value> getStarts(Location loc, Value number, int64_t rank) {
    SmallVector<Value> starts(rank + 1, getInteger(loc, 0));
    starts.front() = number;
    return starts;
  }

  /// One of the parts that lie behind each other.
  Value take(Value stacked, RankedTensorType type, Value number) {
    Location loc = stacked.getLoc();
    SmallVector<int64_t> sizes(getType(stacked).getShape());
    sizes.front() = 1;
    Value slice = stablehlo::DynamicSliceOp::create(
        builder, loc, RankedTensorType::get(sizes, type.getElementType()),
        stacked, getStarts(loc, number, type.getRank()),
        builder.getDenseI64ArrayAttr(sizes));
    return stablehlo::ReshapeOp::create(builder, loc, type, slice);
  }

  Value put(Value stacked, Value own, Value number) {
    Location loc = own.getLoc();
    SmallVector<int64_t> shape = {1};
    llvm::append_range(shape, getType(own).getShape());
    Value slice = stablehlo::ReshapeOp::create(builder, loc,
                                               getType(own).clone(shape), own);
    return stablehlo::DynamicUpdateSliceOp::create(
        builder, loc, stacked.getType(), stacked, slice,
        getStarts(loc, number, getType(own).getRank()));
  }

  /// What lies behind each other side by side.
  Value unstack(CollectOp collect, Value stacked) {
    auto dimension = static_cast<int64_t>(collect.getDimension());
    Location loc = collect.getLoc();
    if (dimension > 0) {
      SmallVector<int64_t> order, shape;
      for (int64_t dim = 1; dim < getType(stacked).getRank(); ++dim) {
        if (dim == dimension + 1) {
          order.push_back(0);
        }
        order.push_back(dim);
      }
      for (int64_t dim : order) {
        shape.push_back(getType(stacked).getDimSize(dim));
      }
      stacked = stablehlo::TransposeOp::create(
          builder, loc, getType(stacked).clone(shape), stacked, order);
    }
    return stablehlo::ReshapeOp::create(builder, loc, collect.getType(),
                                        stacked);
  }

  OpBuilder &builder;
  func::FuncOp function;
  Block &block;
  ValueRange given;
  int64_t count;
  /// From values of the function to those of the program.
  IRMapping mapping;
  llvm::DenseSet<Value> ofOne;
  SmallVector<Operation *> turn, joins;
  llvm::DenseSet<Operation *> behind;
  llvm::SetVector<Value> same;
  SmallVector<BlockArgument> parts;
};

} // namespace

FailureOr<SmallVector<Value>> emitPassLoop(OpBuilder &builder,
                                           func::FuncOp function,
                                           ValueRange given,
                                           int64_t numMicroBatches) {
  return PassLoop(builder, function, given, numMicroBatches).run();
}

} // namespace mlir::alpa
