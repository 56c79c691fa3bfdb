//===- BlockWindows.cpp - What of a slice lies in a block -----------------===//
//
// Every start that is written here lies inside of its operand: XLA adds the
// starts of slices of slices, and moves the sum inside, not the starts.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/BlockWindows.h"

using namespace mlir;
using namespace mlir::stablehlo;

static RankedTensorType getTensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// `min(max(value, 0), most)` of a scalar.
static Value clamp(LocalEmitter &emit, Value value, int64_t most) {
  RankedTensorType type = getTensorType(value);
  return emit.binary<MinOp>(emit.binary<MaxOp>(value, emit.splat(type, 0)),
                            emit.splat(type, most));
}

void BlockWindowEmitter::add(int64_t dim, unsigned factor, Value start,
                             int64_t taken) {
  int64_t rows = context.getLocalSize(factor);
  int64_t size = std::min(taken, rows);
  Value first = emit.binary<SubtractOp>(
      clamp(emit, start, context.getRule().factors[factor].size - taken),
      context.getOffset(factor, getTensorType(start).getElementType()));
  Value inBlock = clamp(emit, first, rows - size);
  windows.push_back(
      {dim, taken, size, inBlock, emit.binary<SubtractOp>(inBlock, first)});
}

Value BlockWindowEmitter::slice(Value block, ArrayRef<Value> starts,
                                ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> windowSizes(sizes);
  for (const BlockWindow &window : windows) {
    windowSizes[window.dim] = window.size;
  }
  Value result = emit.dynamicSlice(block, getStarts(starts), windowSizes);
  RankedTensorType type = getTensorType(result);
  result = emit.select(mask(type), result, emit.neutral(type));
  for (const BlockWindow &window : windows) {
    if (window.taken == 1) {
      continue;
    }
    SmallVector<int64_t> shape(getTensorType(result).getShape());
    shape[window.dim] = window.taken + 2 * window.size;
    RankedTensorType padded = getTensorType(result).clone(shape);
    Value place = getPaddedPlace(window);
    result = emit.slice(dynamicUpdate(emit.neutral(padded), result,
                                      at(padded, window.dim, place)),
                        window.dim, window.size, window.size + window.taken);
  }
  return result;
}

Value BlockWindowEmitter::update(Value block, Value update,
                                 ArrayRef<Value> starts) {
  for (const BlockWindow &window : windows) {
    if (window.taken == 1) {
      continue;
    }
    SmallVector<int64_t> sizes(getTensorType(update).getShape());
    sizes[window.dim] = window.size;
    Value padded = emit.pad(update, window.dim, window.size);
    update = emit.dynamicSlice(
        padded, at(getTensorType(padded), window.dim, getPaddedPlace(window)),
        sizes);
  }
  SmallVector<Value> inBlock = getStarts(starts);
  RankedTensorType type = getTensorType(update);
  Value old = emit.dynamicSlice(block, inBlock, type.getShape());
  return dynamicUpdate(block, emit.select(mask(type), update, old), inBlock);
}

SmallVector<Value> BlockWindowEmitter::getStarts(ArrayRef<Value> starts) {
  SmallVector<Value> result(starts);
  for (const BlockWindow &window : windows) {
    result[window.dim] = window.start;
  }
  return result;
}

Value BlockWindowEmitter::dynamicUpdate(Value value, Value update,
                                        ArrayRef<Value> starts) {
  return DynamicUpdateSliceOp::create(context.getBuilder(), loc,
                                      value.getType(), value, update, starts)
      .getResult();
}

SmallVector<Value> BlockWindowEmitter::at(RankedTensorType type, int64_t dim,
                                          Value start) {
  SmallVector<Value> starts(type.getRank(),
                            emit.splat(getTensorType(start), 0));
  starts[dim] = start;
  return starts;
}

Value BlockWindowEmitter::getPaddedPlace(const BlockWindow &window) {
  // A window that lies at place p of the slice is at p + size of the slice with
  // so many rows more in front; one that is beside the slice is among those.
  return clamp(
      emit,
      emit.binary<AddOp>(window.place,
                         emit.splat(getTensorType(window.place), window.size)),
      window.taken + window.size);
}

Value BlockWindowEmitter::mask(RankedTensorType type) {
  OpBuilder &builder = context.getBuilder();
  Value all;
  for (const BlockWindow &window : windows) {
    RankedTensorType rows =
        getTensorType(window.place).clone(ArrayRef<int64_t>(window.size));
    Value places = emit.broadcast(window.place, rows, 0);
    if (window.size > 1) {
      Value iota = IotaOp::create(builder, loc, rows, 0).getResult();
      places = emit.binary<AddOp>(places, iota);
    }
    Value isTaken = emit.binary<AndOp>(
        emit.compare(places, emit.splat(rows, 0), ComparisonDirection::GE),
        emit.compare(places, emit.splat(rows, window.taken),
                     ComparisonDirection::LT));
    isTaken = emit.broadcast(
        isTaken, RankedTensorType::get(type.getShape(), builder.getI1Type()),
        window.dim);
    all = all ? emit.binary<AndOp>(all, isTaken) : isTaken;
  }
  return all;
}
