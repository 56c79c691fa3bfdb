//===- AttentionBlocks.cpp - Scores of some keys --------------------------===//

#include "dialects/stablehlo/ShardingRules/AttentionBlocks.h"
#include "dialects/alpa/Sharding.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <algorithm>
#include <cmath>

using namespace mlir;
using namespace mlir::stablehlo;

/// Fewer rows or keys at once are no product worth the name (heuristic).
static constexpr int64_t kFewest = 16;

Value BlockEmitter::splat(RankedTensorType type, double number) {
  Type elementType = type.getElementType();
  Attribute element =
      isa<FloatType>(elementType)
          ? Attribute(builder.getFloatAttr(elementType, number))
          : builder.getIntegerAttr(elementType, static_cast<int64_t>(number));
  return ConstantOp::create(builder, loc, type,
                            DenseElementsAttr::get(type, element));
}

Value BlockEmitter::index(int64_t number) {
  auto type = RankedTensorType::get({}, builder.getI32Type());
  return ConstantOp::create(
      builder, loc, type,
      DenseElementsAttr::get(type,
                             Attribute(builder.getI32IntegerAttr(number))));
}

Value BlockEmitter::convert(Value value, Type elementType) {
  RankedTensorType type = getType(value);
  if (type.getElementType() == elementType) {
    return value;
  }
  return ConvertOp::create(
      builder, loc, RankedTensorType::get(type.getShape(), elementType), value);
}

Value BlockEmitter::spread(Value rows, int64_t size) {
  RankedTensorType type = getType(rows);
  SmallVector<int64_t> shape(type.getShape());
  shape.push_back(size);
  return BroadcastInDimOp::create(builder, loc, type.clone(shape), rows,
                                  builder.getDenseI64ArrayAttr(llvm::to_vector(
                                      llvm::seq<int64_t>(type.getRank()))));
}

Value BlockEmitter::fill(Value scalar, RankedTensorType type) {
  return BroadcastInDimOp::create(builder, loc, type, scalar,
                                  builder.getDenseI64ArrayAttr({}));
}

Value BlockEmitter::exponential(Value value) {
  return ExpOp::create(builder, loc, value.getType(), value);
}

Value BlockEmitter::compare(Value lhs, Value rhs,
                            ComparisonDirection direction) {
  MLIRContext *context = builder.getContext();
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(lhs.getType()));
  return CompareOp::create(
      builder, loc,
      RankedTensorType::get(getType(lhs).getShape(), builder.getI1Type()), lhs,
      rhs, ComparisonDirectionAttr::get(context, direction),
      ComparisonTypeAttr::get(context, isFloat ? ComparisonType::FLOAT
                                               : ComparisonType::SIGNED));
}

Value BlockEmitter::negate(Value mask) {
  return NotOp::create(builder, loc, mask.getType(), mask);
}

Value BlockEmitter::fence(Value value) {
  if (!value) {
    return value;
  }
  return OptimizationBarrierOp::create(builder, loc, TypeRange(value.getType()),
                                       ValueRange(value))
      ->getResult(0);
}

Value BlockEmitter::select(Value mask, Value onTrue, Value onFalse) {
  return SelectOp::create(builder, loc, onTrue.getType(), mask, onTrue,
                          onFalse);
}

template <typename Op>
Value BlockEmitter::reduce(Value value, double init, ArrayRef<int64_t> dims) {
  RankedTensorType type = getType(value);
  RankedTensorType scalar = RankedTensorType::get({}, type.getElementType());
  SmallVector<int64_t> kept;
  for (auto [dim, size] : llvm::enumerate(type.getShape())) {
    if (!llvm::is_contained(dims, static_cast<int64_t>(dim))) {
      kept.push_back(size);
    }
  }
  auto made = ReduceOp::create(
      builder, loc, TypeRange(type.clone(kept)), ValueRange(value),
      ValueRange(splat(scalar, init)), builder.getDenseI64ArrayAttr(dims));
  OpBuilder::InsertionGuard guard(builder);
  Block *body =
      builder.createBlock(&made.getBody(), {}, {scalar, scalar}, {loc, loc});
  ReturnOp::create(builder, loc,
                   binary<Op>(body->getArgument(0), body->getArgument(1)));
  return made->getResult(0);
}

template <typename Op>
Value BlockEmitter::reduceLast(Value value, double init) {
  return reduce<Op>(value, init, {getType(value).getRank() - 1});
}

template <typename Op> Value BlockEmitter::reduceAll(Value value, double init) {
  return reduce<Op>(
      value, init,
      llvm::to_vector(llvm::seq<int64_t>(getType(value).getRank())));
}

template Value BlockEmitter::reduceLast<MaxOp>(Value, double);
template Value BlockEmitter::reduceLast<AddOp>(Value, double);
template Value BlockEmitter::reduceAll<MinOp>(Value, double);
template Value BlockEmitter::reduceAll<AddOp>(Value, double);
template Value BlockEmitter::reduceAll<OrOp>(Value, double);

Value BlockEmitter::slice(Value value, int64_t dim, Value start, int64_t size) {
  RankedTensorType type = getType(value);
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = size;
  SmallVector<Value> starts(type.getRank(), index(0));
  starts[dim] = start;
  return DynamicSliceOp::create(builder, loc, type.clone(shape), value, starts,
                                builder.getDenseI64ArrayAttr(shape));
}

Value BlockEmitter::update(Value value, Value part, int64_t dim, Value start) {
  SmallVector<Value> starts(getType(value).getRank(), index(0));
  starts[dim] = start;
  return DynamicUpdateSliceOp::create(builder, loc, value.getType(), value,
                                      part, starts);
}

Value BlockEmitter::product(Value lhs, Value rhs, int64_t numBatch,
                            ArrayRef<int64_t> lhsSummed,
                            ArrayRef<int64_t> rhsSummed, Type elementType,
                            DictionaryAttr attributes) {
  SmallVector<int64_t> shape;
  for (auto [value, summed] :
       {std::pair(lhs, lhsSummed), std::pair(rhs, rhsSummed)}) {
    for (auto [dim, size] : llvm::enumerate(getType(value).getShape())) {
      bool isBatch = static_cast<int64_t>(dim) < numBatch;
      if (!llvm::is_contained(summed, static_cast<int64_t>(dim)) &&
          (!isBatch || value == lhs)) {
        shape.push_back(size);
      }
    }
  }
  auto batch = llvm::to_vector(llvm::seq<int64_t>(numBatch));
  OperationState state(loc, DotGeneralOp::getOperationName());
  state.addOperands({lhs, rhs});
  state.addTypes(RankedTensorType::get(shape, elementType));
  state.addAttributes(attributes.getValue());
  state.addAttribute("dot_dimension_numbers",
                     DotDimensionNumbersAttr::get(builder.getContext(), batch,
                                                  batch, lhsSummed, rhsSummed));
  return builder.create(state)->getResult(0);
}

SmallVector<Value>
BlockEmitter::loop(int64_t count, ArrayRef<Value> initial,
                   function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  Value zero = index(0);
  if (count == 1) {
    return body(zero, initial);
  }
  OperationState state(loc, WhileOp::getOperationName());
  state.addOperands(zero);
  state.addOperands(initial);
  SmallVector<Type> types =
      llvm::to_vector(ValueRange(state.operands).getTypes());
  state.addTypes(types);
  state.addRegion();
  state.addRegion();
  Operation *made = builder.create(state);
  SmallVector<Location> places(types.size(), loc);
  OpBuilder::InsertionGuard guard(builder);
  Block *condition =
      builder.createBlock(&made->getRegion(0), {}, types, places);
  ReturnOp::create(builder, loc,
                   compare(condition->getArgument(0), index(count),
                           ComparisonDirection::LT));
  Block *turn = builder.createBlock(&made->getRegion(1), {}, types, places);
  SmallVector<Value> next =
      body(turn->getArgument(0), turn->getArguments().drop_front());
  next.insert(next.begin(), binary<AddOp>(turn->getArgument(0), index(1)));
  ReturnOp::create(builder, loc, next);
  return llvm::to_vector_of<Value>(made->getResults().drop_front());
}

SmallVector<Value>
BlockEmitter::unless(Value isDone, ValueRange done,
                     function_ref<SmallVector<Value>()> body) {
  OperationState state(loc, IfOp::getOperationName());
  state.addOperands(isDone);
  state.addTypes(done.getTypes());
  state.addRegion();
  state.addRegion();
  Operation *made = builder.create(state);
  OpBuilder::InsertionGuard guard(builder);
  builder.createBlock(&made->getRegion(0));
  ReturnOp::create(builder, loc, done);
  builder.createBlock(&made->getRegion(1));
  ReturnOp::create(builder, loc, body());
  return llvm::to_vector_of<Value>(made->getResults());
}

void stablehlo::emitOperators(BlockEmitter &emit,
                              ArrayRef<Operation *> operators,
                              ArrayRef<int64_t> shape, ArrayRef<Value> offsets,
                              IRMapping &mapping) {
  OpBuilder &builder = emit.getBuilder();
  for (Operation *each : operators) {
    Operation &op = *each;
    auto type = cast<RankedTensorType>(op.getResult(0).getType()).clone(shape);
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      auto number = cast<DenseElementsAttr>(constant.getValue());
      mapping.map(op.getResult(0),
                  ConstantOp::create(builder, op.getLoc(), type,
                                     number.resizeSplat(type))
                      .getResult());
      continue;
    }
    Operation *made = builder.clone(op, mapping);
    made->getResult(0).setType(type);
    auto iota = dyn_cast<IotaOp>(op);
    Value offset = iota ? offsets[iota.getIotaDimension()] : Value();
    if (offset) {
      Value first =
          emit.fill(emit.convert(offset, type.getElementType()), type);
      mapping.map(op.getResult(0),
                  emit.binary<AddOp>(made->getResult(0), first));
    }
  }
}

SmallVector<Value> stablehlo::emitScores(BlockEmitter &emit, Region &region,
                                         ArrayRef<Value> numbers,
                                         ArrayRef<Value> extras,
                                         ArrayRef<Value> offsets) {
  Block &block = region.front();
  ArrayRef<int64_t> shape = BlockEmitter::getType(numbers.front()).getShape();
  IRMapping mapping;
  mapping.map(block.getArguments().take_front(numbers.size()), numbers);
  mapping.map(block.getArguments().drop_front(numbers.size()), extras);
  SmallVector<Operation *> operators;
  for (Operation &op : block.without_terminator()) {
    operators.push_back(&op);
  }
  emitOperators(emit, operators, shape, offsets, mapping);
  return llvm::map_to_vector(
      block.getTerminator()->getOperands(),
      [&](Value yielded) { return mapping.lookup(yielded); });
}

/// The largest divisor up to a limit, and not below `kFewest` unless there is
/// no other than the size itself.
static int64_t getBlockSize(int64_t size, double most) {
  int64_t few = std::min(size, kFewest), best = size;
  for (int64_t block = size; block >= few; --block) {
    if (size % block != 0) {
      continue;
    }
    best = block;
    if (static_cast<double>(block) <= most) {
      break;
    }
  }
  return best;
}

template <typename Op>
ScoreBlocks::ScoreBlocks(Op op, ArrayRef<int64_t> rows, int64_t numKeys,
                         std::optional<SequenceLoop> sequence,
                         int64_t numShards)
    : numKeys(numKeys), numShards(numShards) {
  const int64_t *longest =
      std::max_element(rows.begin() + op.getBatch(), rows.end());
  rowDim = longest - rows.begin();
  numRows = *longest;
  std::optional<ScoreMask> mask = findMask(op.getScores());
  if (mask && !isTriangular(*mask, op.getScores())) {
    mask.reset();
  }
  // What has a number per score is more than is worth moving.
  auto isPerScore = [&](unsigned extra) {
    ArrayRef<int64_t> dims = op.getExtraDims(extra);
    return llvm::is_contained(dims, rowDim) &&
           llvm::is_contained(dims, static_cast<int64_t>(rows.size()));
  };
  isZigzag =
      mask && numShards > 1 && sequence && sequence->dim == rowDim &&
      numRows % 2 == 0 &&
      llvm::none_of(llvm::seq<unsigned>(op.getExtras().size()), isPerScore);

  double columnBytes = alpa::getTensorBytes(
      RankedTensorType::get({}, getElementTypeOrSelf(op.getSum().getType())));
  for (auto [dim, size] : llvm::enumerate(rows)) {
    columnBytes *= static_cast<int64_t>(dim) == rowDim ? 1.0 : size;
  }
  // No block has scores of both halves of a zigzag.
  int64_t numHalves = isZigzag ? 2 : 1;
  double scores = static_cast<double>(op.getBlockBytes()) / columnBytes;
  double side =
      std::min(static_cast<double>(numRows / numHalves), std::sqrt(scores));
  blockKeys = getBlockSize(numKeys / numHalves, scores / side);
  blockRows = getBlockSize(numRows / numHalves,
                           scores / static_cast<double>(blockKeys));
  bool isSkipping =
      numShards > 1 ? isZigzag : blockRows < numRows || blockKeys < numKeys;
  if (isSkipping) {
    skippingMask = mask;
  }
}

template ScoreBlocks::ScoreBlocks(alpa::AttentionOp, ArrayRef<int64_t>, int64_t,
                                  std::optional<SequenceLoop>, int64_t);
template ScoreBlocks::ScoreBlocks(alpa::AttentionGradientOp, ArrayRef<int64_t>,
                                  int64_t, std::optional<SequenceLoop>,
                                  int64_t);

double ScoreBlocks::getSeenShare() const {
  int64_t numHalves = isZigzag ? 2 : 1, keys = numKeys / numHalves / blockKeys;
  double seen = 0, all = 0;
  for (int64_t end = blockRows; end <= numRows / numHalves; end += blockRows) {
    seen += std::min<int64_t>(llvm::divideCeil(end, blockKeys), keys);
    all += keys;
  }
  if (!isZigzag) {
    return seen / all;
  }
  // Of its own keys a device sees two triangles and, from its back, its front;
  // of those of every other device two halves of four.
  double others = numShards - 1;
  return (2 * seen + all + 2 * all * others) / (4 * all * numShards);
}
