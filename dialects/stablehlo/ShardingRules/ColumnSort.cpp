//===- ColumnSort.cpp - Sorting what lies in blocks -----------------------===//

#include "dialects/stablehlo/ShardingRules/ColumnSort.h"

#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::LocalContext;
using alpa::ShardingRule;

int64_t stablehlo::getSortedDim(SortOp sort) {
  auto dim = static_cast<int64_t>(sort.getDimension());
  auto type = cast<ShapedType>(sort.getInputs().front().getType());
  return dim < 0 ? dim + type.getRank() : dim;
}

/// Whether elements that are in no order are the same: integers that are
/// compared as they are. Floats are not: zeros have signs.
static bool isTotalOrder(SortOp sort) {
  Block &order = sort.getComparator().front();
  if (sort.getInputs().size() != 1 || order.getOperations().size() != 2) {
    return false;
  }
  auto compare = dyn_cast<CompareOp>(order.front());
  return compare && isa<IntegerType>(getElementTypeOrSelf(compare.getLhs())) &&
         isa<BlockArgument>(compare.getLhs()) &&
         isa<BlockArgument>(compare.getRhs()) &&
         compare.getLhs() != compare.getRhs();
}

/// The operand that counts the elements, if there is one: that of an argsort.
static std::optional<unsigned> findPositions(SortOp sort) {
  for (auto [index, operand] : llvm::enumerate(sort.getInputs())) {
    auto iota = operand.getDefiningOp<IotaOp>();
    bool isInteger = isa<IntegerType>(getElementTypeOrSelf(operand.getType()));
    if (iota && isInteger &&
        static_cast<int64_t>(iota.getIotaDimension()) == getSortedDim(sort)) {
      return index;
    }
  }
  return std::nullopt;
}

static bool addsPositions(SortOp sort) {
  return !isTotalOrder(sort) && !findPositions(sort);
}

/// The type of positions in the dimension of a sort.
static Type getPositionType(SortOp sort) {
  auto type = cast<ShapedType>(sort.getInputs().front().getType());
  bool isNarrow = llvm::isInt<32>(type.getDimSize(getSortedDim(sort)));
  return IntegerType::get(sort.getContext(), isNarrow ? 32 : 64);
}

ColumnSortWork stablehlo::getColumnSortWork(SortOp sort,
                                            const ShardingRule &rule,
                                            ArrayRef<int64_t> factorShards) {
  const alpa::TensorFactors &dims = rule.operands.front();
  double bytes = 0, usedBytes = 0;
  for (OpResult result : sort->getResults()) {
    double own = getBlockBytes(result.getType(), dims, factorShards);
    bytes += own;
    usedBytes += result.use_empty() ? 0 : own;
  }
  if (addsPositions(sort)) {
    auto type = cast<RankedTensorType>(sort->getResult(0).getType());
    bytes +=
        getBlockBytes(type.clone(getPositionType(sort)), dims, factorShards);
  }
  unsigned factor = dims[getSortedDim(sort)].front();
  int64_t length = rule.factors[factor].size / factorShards[factor];
  double half = static_cast<double>(length / 2) / static_cast<double>(length);
  return {bytes, half * bytes, half * usedBytes};
}

ColumnSort::ColumnSort(SortOp sort, unsigned factor, LocalContext &context)
    : sort(sort), factor(factor), context(context),
      builder(context.getBuilder()), emit(context, sort.getLoc()),
      dim(getSortedDim(sort)), numBlocks(context.getNumShards(factor)),
      length(context.getLocalSize(factor)) {}

SmallVector<Value> ColumnSort::run() {
  Blocks blocks(context.getOperands());
  positions = findPositions(sort);
  if (addsPositions(sort)) {
    positions = blocks.size();
    blocks.push_back(
        emitPositions(cast<RankedTensorType>(blocks.front().getType())));
  }
  blocks = sortBlocks(blocks);
  for (Value &block : blocks) {
    block = deal(block);
  }
  blocks = sortBlocks(blocks);
  for (Value &block : blocks) {
    block = collect(block);
  }
  blocks = mergeHalves(sortBlocks(blocks));
  blocks.resize(sort.getNumResults());
  return blocks;
}

Value ColumnSort::emitPositions(RankedTensorType block) {
  RankedTensorType type = block.clone(getPositionType(sort));
  Value inside = IotaOp::create(builder, sort.getLoc(), type, dim);
  Value offset = context.getOffset(factor, type.getElementType());
  return emit.binary<AddOp>(inside, emit.broadcast(offset, type, -1));
}

//===----------------------------------------------------------------------===//
// One block
//===----------------------------------------------------------------------===//

ColumnSort::Blocks ColumnSort::sortBlocks(const Blocks &blocks) {
  auto local = SortOp::create(
      builder, sort.getLoc(), ValueRange(blocks).getTypes(), blocks,
      builder.getI64IntegerAttr(dim), builder.getBoolAttr(false));
  addComparator(local);
  return Blocks(local.getResults());
}

/// before: a < b
/// after:  a < b or (not b < a and position of a < position of b)
void ColumnSort::addComparator(SortOp local) {
  OpBuilder::InsertionGuard guard(builder);
  SmallVector<Type> types;
  for (Type type : local.getResultTypes()) {
    types.append(2, cast<RankedTensorType>(type).clone(ArrayRef<int64_t>()));
  }
  SmallVector<Location> locations(types.size(), sort.getLoc());
  Block *order =
      builder.createBlock(&local.getComparator(), {}, types, locations);
  SmallVector<Value> left, right;
  for (unsigned index = 0; index < types.size(); index += 2) {
    left.push_back(order->getArgument(index));
    right.push_back(order->getArgument(index + 1));
  }
  Value before = emitBefore(left, right);
  if (positions) {
    Type number = getElementTypeOrSelf(left[*positions]);
    Value isFirst = emit.compare(
        left[*positions], right[*positions], ComparisonDirection::LT,
        number.isUnsignedInteger() ? ComparisonType::UNSIGNED
                                   : ComparisonType::SIGNED);
    Value isAfter = emitBefore(right, left);
    before = emit.select(isAfter, before, emit.binary<OrOp>(before, isFirst));
  }
  ReturnOp::create(builder, sort.getLoc(), before);
}

/// What the comparator of the sort says of two.
Value ColumnSort::emitBefore(ValueRange left, ValueRange right) {
  Block &order = sort.getComparator().front();
  IRMapping mapping;
  for (unsigned index = 0; index < order.getNumArguments(); ++index) {
    mapping.map(order.getArgument(index),
                index % 2 == 0 ? left[index / 2] : right[index / 2]);
  }
  for (Operation &op : order.without_terminator()) {
    builder.clone(op, mapping);
  }
  return mapping.lookupOrDefault(order.getTerminator()->getOperand(0));
}

//===----------------------------------------------------------------------===//
// Between blocks
//===----------------------------------------------------------------------===//

Value ColumnSort::move(Value value, int64_t from, int64_t to) {
  auto type = cast<RankedTensorType>(value.getType());
  auto order = llvm::to_vector(llvm::seq(type.getRank()));
  order.erase(order.begin() + from);
  order.insert(order.begin() + to, from);
  auto shape = llvm::map_to_vector(
      order, [&](int64_t other) { return type.getDimSize(other); });
  return TransposeOp::create(builder, sort.getLoc(), type.clone(shape), value,
                             order);
}

Value ColumnSort::cut(Value value, int64_t major, int64_t minor) {
  SmallVector<int64_t> shape(
      cast<RankedTensorType>(context.getOperands().front().getType())
          .getShape());
  shape[dim] = major;
  shape.insert(shape.begin() + dim + 1, minor);
  return emit.reshape(value, shape);
}

/// Row i goes to column i % s, and those of column j lie there one below the
/// other, below those of the columns before.
Value ColumnSort::deal(Value block) {
  auto type = cast<RankedTensorType>(block.getType());
  Value dealt = move(cut(block, length / numBlocks, numBlocks), dim + 1, 0);
  dealt = context.deal(dealt, factor);
  return emit.reshape(move(dealt, 0, dim), type.getShape());
}

Value ColumnSort::collect(Value block) {
  auto type = cast<RankedTensorType>(block.getType());
  Value collected = move(cut(block, numBlocks, length / numBlocks), dim, 0);
  collected = context.deal(collected, factor);
  return emit.reshape(move(collected, 0, dim + 1), type.getShape());
}

Value ColumnSort::isLastBlock() {
  auto type = RankedTensorType::get({}, context.getIndexType(factor));
  return emit.compare(context.getOffset(factor, type.getElementType()),
                      emit.splat(type, length * (numBlocks - 1)),
                      ComparisonDirection::EQ);
}

/// What is not at its place yet is in the last half of one column and the
/// first of the next.
ColumnSort::Blocks ColumnSort::mergeHalves(const Blocks &blocks) {
  int64_t half = length / 2;
  auto concatenate = [&](Value left, Value right, Type type) -> Value {
    return ConcatenateOp::create(builder, sort.getLoc(), type,
                                 ValueRange{left, right},
                                 builder.getI64IntegerAttr(dim));
  };
  Blocks merged;
  for (Value block : blocks) {
    Value before =
        context.shift(emit.slice(block, dim, length - half, length), 1, factor);
    merged.push_back(concatenate(
        before, emit.slice(block, dim, 0, length - half), block.getType()));
  }
  Value isFirst = emit.isFirstBlock(factor), isLast = isLastBlock();
  Blocks results;
  for (auto [block, found] : llvm::zip(blocks, sortBlocks(merged))) {
    Value own = emit.select(isFirst, emit.slice(block, dim, 0, length - half),
                            emit.slice(found, dim, half, length));
    Value after = context.shift(emit.slice(found, dim, 0, half), -1, factor);
    after = emit.select(isLast, emit.slice(block, dim, length - half, length),
                        after);
    results.push_back(concatenate(own, after, block.getType()));
  }
  return results;
}
