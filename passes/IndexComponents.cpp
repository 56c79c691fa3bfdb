//===- IndexComponents.cpp - Components of the indices of a lookup --------===//

#include "passes/IndexComponents.h"

#include "dialects/stablehlo/DataFlow/TripCount.h"
#include "dialects/stablehlo/ShardingRules/KnownValues.h"
#include "mlir/IR/Matchers.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

using namespace stablehlo;

namespace {

/// Longest chain of operators that is looked through; heuristic.
constexpr int kMaxDepth = 8;

RankedTensorType getTensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// The integer that every element at position `component` of dimension `dim` is
/// known to be; of all elements if the value has no such dimension.
std::optional<int64_t> getNumber(Value value, std::optional<int64_t> dim,
                                 int64_t component, int depth = 0) {
  value = getBeforeLoops(value);
  Operation *op = value.getDefiningOp();
  if (!op || depth == kMaxDepth) {
    return std::nullopt;
  }
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto elements = dyn_cast<DenseIntElementsAttr>(constant.getValue());
    bool isRow = dim && getTensorType(value).getRank() == 1;
    if (!elements || elements.empty() || (!elements.isSplat() && !isRow)) {
      return std::nullopt;
    }
    APInt number = elements.getValues<APInt>()[isRow ? component : 0];
    bool isUnsigned = elements.getElementType().isUnsignedInteger();
    return isUnsigned ? number.getLimitedValue(INT64_MAX)
                      : number.getSExtValue();
  }
  if (auto broadcast = dyn_cast<BroadcastInDimOp>(op)) {
    auto type = getTensorType(op->getOperand(0));
    std::optional<int64_t> from;
    for (auto [index, to] :
         llvm::enumerate(broadcast.getBroadcastDimensions())) {
      if (dim && to == *dim && type.getDimSize(index) != 1) {
        from = index;
      }
    }
    return getNumber(op->getOperand(0), from, component, depth + 1);
  }
  if (isa<MinOp, MaxOp>(op)) {
    auto left = getNumber(op->getOperand(0), dim, component, depth + 1);
    auto right = getNumber(op->getOperand(1), dim, component, depth + 1);
    if (!left || !right) {
      return std::nullopt;
    }
    return isa<MinOp>(op) ? std::min(*left, *right) : std::max(*left, *right);
  }
  return std::nullopt;
}

/// A number that every turn of a loop has: `factor` * turn + `offset`.
struct OfTurn {
  int64_t factor = 0, offset = 0;
};

/// That of a carried integer which starts at a number and grows by one.
std::optional<OfTurn> getCounter(BlockArgument argument, WhileOp loop) {
  Block &body = loop.getBody().front();
  unsigned number = argument.getArgNumber();
  auto next = body.getTerminator()->getOperand(number).getDefiningOp<AddOp>();
  std::optional<int64_t> start =
      getNumber(loop->getOperand(number), std::nullopt, 0);
  bool isCounted = next && start && next.getLhs() == argument &&
                   getNumber(next.getRhs(), std::nullopt, 0) == 1;
  return isCounted ? std::optional(OfTurn{1, *start}) : std::nullopt;
}

std::optional<OfTurn> getOfTurn(Value value, WhileOp loop, int depth = 0) {
  if (std::optional<int64_t> number = getNumber(value, std::nullopt, 0)) {
    return OfTurn{0, *number};
  }
  auto argument = dyn_cast<BlockArgument>(value);
  if (argument && argument.getOwner() == &loop.getBody().front()) {
    return getCounter(argument, loop);
  }
  Operation *op = value.getDefiningOp();
  if (!op || !isa<AddOp, SubtractOp>(op) || depth == kMaxDepth) {
    return std::nullopt;
  }
  std::optional<OfTurn> left = getOfTurn(op->getOperand(0), loop, depth + 1);
  std::optional<OfTurn> right = getOfTurn(op->getOperand(1), loop, depth + 1);
  if (!left || !right) {
    return std::nullopt;
  }
  int64_t sign = isa<AddOp>(op) ? 1 : -1;
  return OfTurn{left->factor + sign * right->factor,
                left->offset + sign * right->offset};
}

/// Whether the turns of a loop go through all rows of a stack, from the first
/// on or from the last.
bool goesThrough(Value row, WhileOp loop, int64_t numRows) {
  std::optional<OfTurn> found = getOfTurn(row, loop);
  bool isUp = found && found->factor == 1 && found->offset == 0;
  bool isDown = found && found->factor == -1 && found->offset == numRows - 1;
  return (isUp || isDown) && getTripCount(loop) == numRows;
}

/// Whether a value is another one with a dimension of size one in front.
bool isPutBehindOne(RankedTensorType narrow, RankedTensorType wide) {
  return wide.getRank() == narrow.getRank() + 1 && wide.getDimSize(0) == 1 &&
         wide.getShape().drop_front() == narrow.getShape();
}

/// What a value is without a dimension of size one that was put in front.
Value getBehindOne(Value wide) {
  Operation *op = wide.getDefiningOp();
  if (!op || !isa<BroadcastInDimOp, ReshapeOp>(op) ||
      !isPutBehindOne(getTensorType(op->getOperand(0)), getTensorType(wide))) {
    return {};
  }
  if (auto broadcast = dyn_cast<BroadcastInDimOp>(op)) {
    for (auto [from, to] :
         llvm::enumerate(broadcast.getBroadcastDimensions())) {
      if (to != static_cast<int64_t>(from) + 1) {
        return {};
      }
    }
  }
  return op->getOperand(0);
}

/// What every turn of a loop writes to its own row of a stack that `row` is one
/// row of: every row has been written.
///
///   stack = while(s = ...) { s[turn] = written }
///   row = stack[i]
Value getWritten(ReshapeOp row) {
  auto read = row.getOperand().getDefiningOp<DynamicSliceOp>();
  if (!read || !isPutBehindOne(getTensorType(row), getTensorType(read))) {
    return {};
  }
  auto stack = dyn_cast<OpResult>(getBeforeLoops(read->getOperand(0)));
  auto loop = stack ? dyn_cast<WhileOp>(stack.getOwner()) : WhileOp();
  auto type = stack ? getTensorType(stack) : RankedTensorType();
  if (!loop || type.getShape().drop_front() != getTensorType(row).getShape()) {
    return {};
  }
  Block &body = loop.getBody().front();
  unsigned number = stack.getResultNumber();
  auto write = body.getTerminator()
                   ->getOperand(number)
                   .getDefiningOp<DynamicUpdateSliceOp>();
  if (!write || write->getOperand(0) != body.getArgument(number) ||
      !goesThrough(write->getOperand(2), loop, type.getDimSize(0))) {
    return {};
  }
  return getBehindOne(write->getOperand(1));
}

std::optional<int64_t> getPositions(Value indices, int64_t vectorDim,
                                    int64_t component, int depth) {
  auto type = getTensorType(indices);
  if (vectorDim >= type.getRank() || type.getDimSize(vectorDim) == 1) {
    std::optional<int64_t> rows = getKnownPositions(indices);
    if (rows && *rows != vectorDim) {
      return rows;
    }
  }
  indices = getBeforeLoops(indices);
  Operation *op = indices.getDefiningOp();
  if (!op || depth == kMaxDepth) {
    return std::nullopt;
  }
  auto join = dyn_cast<ConcatenateOp>(op);
  if (join && static_cast<int64_t>(join.getDimension()) == vectorDim) {
    for (Value part : join.getInputs()) {
      int64_t count = getTensorType(part).getDimSize(vectorDim);
      if (component < count) {
        return getPositions(part, vectorDim, component, depth + 1);
      }
      component -= count;
    }
  }
  if (auto clamp = dyn_cast<ClampOp>(op)) {
    std::optional<int64_t> rows =
        getPositions(clamp.getOperand(), vectorDim, component, depth + 1);
    std::optional<int64_t> least =
        getNumber(clamp.getMin(), vectorDim, component);
    std::optional<int64_t> most =
        getNumber(clamp.getMax(), vectorDim, component);
    bool isWithin = rows && least && most && *least <= 0 &&
                    *most >= type.getDimSize(*rows) - 1;
    return isWithin ? rows : std::nullopt;
  }
  if (auto reshape = dyn_cast<ReshapeOp>(op)) {
    if (Value written = getWritten(reshape)) {
      return getPositions(written, vectorDim, component, depth + 1);
    }
  }
  return std::nullopt;
}

} // namespace

std::optional<int64_t> getOwnPositions(Value indices, int64_t vectorDim,
                                       int64_t component) {
  return getPositions(indices, vectorDim, component, /*depth=*/0);
}

Value getComponents(Value indices, int64_t vectorDim,
                    ArrayRef<int64_t> components) {
  OpBuilder builder(indices.getContext());
  builder.setInsertionPointAfterValue(indices);
  Location loc = indices.getLoc();
  auto type = getTensorType(indices);
  auto resize = [&](int64_t size) {
    SmallVector<int64_t> shape(type.getShape());
    shape[vectorDim] = size;
    return type.clone(shape);
  };
  SmallVector<Value> parts;
  auto join = indices.getDefiningOp<ConcatenateOp>();
  if (join && static_cast<int64_t>(join.getDimension()) == vectorDim &&
      llvm::all_of(join.getInputs(), [&](Value part) {
        return getTensorType(part).getDimSize(vectorDim) == 1;
      })) {
    for (int64_t component : components) {
      parts.push_back(join.getInputs()[component]);
    }
  } else {
    for (int64_t component : components) {
      SmallVector<int64_t> start(type.getRank(), 0), limit(type.getShape());
      start[vectorDim] = component;
      limit[vectorDim] = component + 1;
      parts.push_back(SliceOp::create(
          builder, loc, resize(1), indices, builder.getDenseI64ArrayAttr(start),
          builder.getDenseI64ArrayAttr(limit),
          builder.getDenseI64ArrayAttr(
              SmallVector<int64_t>(type.getRank(), 1))));
    }
  }
  if (parts.size() == 1) {
    return parts.front();
  }
  return ConcatenateOp::create(builder, loc, resize(parts.size()), parts,
                               vectorDim);
}

} // namespace mlir::alpa
