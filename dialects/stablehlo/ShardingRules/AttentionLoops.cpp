//===- AttentionLoops.cpp - Attention on one device -----------------------===//
//
// A device goes over its rows in blocks and over the keys in blocks of these,
// and keeps, per row, the greatest score and what it has of the sums so far, in
// terms of that score (Milakov and Gimelshein, arXiv 1805.02867; Rabe and
// Staats, arXiv 2112.05682):
//
//   m' = max(m, max_s x),  l' = exp(m - m') l + sum_s exp(x - m')
//   o' = exp(m - m') o + exp(x - m') v,  at last out = o / l
//
// Weights that are dropped are in l, and not in o. Which they are is computed
// from where they stand in the whole, for every block.
//
// Where queries and keys are split along one sequence, keys and values go
// around the devices (Liu et al., arXiv 2310.01889): the next ones are on their
// way while a device has the scores of those that it holds. In the gradient,
// what keys and values have of theirs so far goes with them, and comes home.
//
// Where a causal mask hides half of the scores, rows and keys lie in zigzag
// over the devices: see `AttentionZigzag.h`.
//
//===----------------------------------------------------------------------===//

#include "dialects/alpa/Sharding.h"
#include "dialects/stablehlo/ShardingRules/AttentionBlocks.h"
#include "dialects/stablehlo/ShardingRules/AttentionZigzag.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"
#include <limits>
#include <tuple>

using namespace mlir;
using namespace mlir::stablehlo;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The exponential of the negative of it is zero: half of the smallest number
/// of `f32` is exp(-103.97), of `f64` exp(-745.13).
constexpr double kNothingLeft = 110, kNothingLeft64 = 750;

/// What both directions have.
///
/// Shapes are local: rows are `[b.., r..]`, scores of a block `[b.., r.., s]`.
template <typename Op> class Loops : protected ScoreBlocks {
public:
  Loops(Op op, alpa::LocalContext &context,
        std::optional<SequenceLoop> sequence, ArrayRef<Value> offsets)
      : ScoreBlocks(op, getRows(context), getKeys(op, context), sequence,
                    sequence ? context.getNumShards(sequence->factor) : 1),
        op(op), context(context), sequence(sequence), offsets(offsets),
        emit(context.getBuilder(), op.getLoc()), numBatch(op.getBatch()),
        accumulated(getElementTypeOrSelf(op.getSum().getType())),
        rowsType(RankedTensorType::get(getRows(context), accumulated)),
        zigzag(isZigzag ? std::optional<AttentionZigzag>(
                              std::in_place, emit, context, sequence->factor)
                        : std::nullopt),
        query(getOperand(0)), key(getOperand(1)), value(getOperand(2)) {
    for (int64_t dim = numBatch; dim < rowsType.getRank(); ++dim) {
      rowDims.push_back(dim);
    }
    SmallVector<int64_t> blockShape(rowsType.getShape());
    blockShape[rowDim] = blockRows;
    blockType = rowsType.clone(blockShape);
  }

protected:
  /// The shape of the rows of a device.
  static ArrayRef<int64_t> getRows(alpa::LocalContext &context) {
    return BlockEmitter::getType(context.getOperands()[0])
        .getShape()
        .drop_back();
  }
  static int64_t getKeys(Op op, alpa::LocalContext &context) {
    return BlockEmitter::getType(context.getOperands()[1])
        .getDimSize(op.getBatch());
  }
  DictionaryAttr getProduct(unsigned index) {
    return cast<DictionaryAttr>(op.getProducts()[index]);
  }
  int64_t getLast() const { return rowsType.getRank(); }
  RankedTensorType accumulatorOf(Value like) {
    return RankedTensorType::get(BlockEmitter::getType(like).getShape(),
                                 accumulated);
  }

  /// An operand as the device goes over it.
  Value getOperand(unsigned index) {
    return arrange(context.getOperands()[index], index);
  }
  SmallVector<Value> getOperandsFrom(unsigned first) {
    return llvm::map_to_vector(
        llvm::seq<unsigned>(first, context.getOperands().size()),
        [&](unsigned index) { return getOperand(index); });
  }
  /// A value with the loops of an operand.
  Value arrange(Value local, unsigned operand) {
    return zigzag ? zigzag->toHalves(local, context.getRule().operands[operand])
                  : local;
  }

  /// A result from what the device has made for it.
  Value makeResult(Value made, unsigned index) {
    Value result = emit.convert(
        made, getElementTypeOrSelf(op->getResult(index).getType()));
    return zigzag ? zigzag->fromHalves(result, context.getRule().results[index])
                  : result;
  }

  /// Where a block of rows begins on the device; null where one block has all.
  struct Rows {
    Value begin, query;
  };

  /// Of a value with rows, those of a block.
  Value sliceRows(Value value, const Rows &rows) {
    return rows.begin ? emit.slice(value, rowDim, rows.begin, blockRows)
                      : value;
  }

  /// The loop over blocks of rows: `add` makes from a block and its part of
  /// what is carried, of which the first `numShared` have no rows and come
  /// whole, the next of that.
  SmallVector<Value>
  overRows(ValueRange state, unsigned numShared,
           function_ref<SmallVector<Value>(const Rows &, ValueRange)> add) {
    if (blockRows == numRows) {
      return add({{}, query}, state);
    }
    return emit.loop(
        numRows / blockRows, llvm::to_vector(state),
        [&](Value turn, ValueRange now) {
          Rows rows{emit.binary<MulOp>(turn, emit.index(blockRows)), {}};
          rows.query = sliceRows(query, rows);
          SmallVector<Value> parts(now.take_front(numShared));
          for (Value whole : now.drop_front(numShared)) {
            parts.push_back(sliceRows(whole, rows));
          }
          SmallVector<Value> next = add(rows, parts);
          for (unsigned index = numShared; index < next.size(); ++index) {
            next[index] =
                emit.update(now[index], next[index], rowDim, rows.begin);
          }
          return next;
        });
  }

  /// The extras of a block of rows and keys; what has keys has all of them.
  SmallVector<Value> sliceExtras(ValueRange extras, const Rows &rows,
                                 Value start) {
    SmallVector<Value> parts(extras);
    for (auto [index, part] : llvm::enumerate(parts)) {
      ArrayRef<int64_t> dims = op.getExtraDims(index);
      const int64_t *row = llvm::find(dims, rowDim);
      if (rows.begin && row != dims.end()) {
        part = emit.slice(part, row - dims.begin(), rows.begin, blockRows);
      }
      if (!dims.empty() && dims.back() == getLast()) {
        part = emit.slice(part, dims.size() - 1, start, blockKeys);
      }
    }
    return parts;
  }

  /// The first row or key of a block, in the whole sequence.
  ///
  /// \param first of a device; null where it has all.
  /// \param begin of the block on the device.
  Value getStart(Value first, Value begin) {
    if (zigzag) {
      return zigzag->getPlace(first, begin);
    }
    return first ? emit.binary<AddOp>(first, begin) : begin;
  }

  /// The loop over blocks of the keys of a device: `add` makes from where a
  /// block begins, in the whole sequence and on the device, its keys, its
  /// values, and carried values the next of these.
  SmallVector<Value> overBlocks(
      Value first, Value keys, Value values, ValueRange state,
      function_ref<SmallVector<Value>(Value, Value, Value, Value, ValueRange)>
          add) {
    return emit.loop(
        numKeys / blockKeys, llvm::to_vector(state),
        [&](Value turn, ValueRange now) {
          Value begin = emit.binary<MulOp>(turn, emit.index(blockKeys));
          Value start = getStart(first, begin);
          Value ownKeys = emit.slice(keys, numBatch, begin, blockKeys);
          Value ownValues = emit.slice(values, numBatch, begin, blockKeys);
          return add(start, begin, ownKeys, ownValues, now);
        });
  }

  /// Products of queries with a block of keys.
  Value emitProducts(const Rows &rows, Value keys) {
    Type raw =
        getElementTypeOrSelf(op.getScores().front().getArgument(0).getType());
    return emit.product(rows.query, keys, numBatch, {getLast()}, {numBatch + 1},
                        raw, getProduct(0));
  }
  SmallVector<Value> getFirsts(const Rows &rows, Value start) {
    SmallVector<Value> firsts(offsets);
    if (rows.begin) {
      firsts[rowDim] = getStart(firsts[rowDim], rows.begin);
    }
    firsts.push_back(start);
    return firsts;
  }
  SmallVector<Value> emitRegion(Region &region, ArrayRef<Value> numbers,
                                ArrayRef<Value> extras, const Rows &rows,
                                Value start) {
    return emitScores(emit, region, numbers, extras, getFirsts(rows, start));
  }

  /// What weights become, or the gradients of weights from those of what they
  /// become.
  ///
  /// \param scores what the region of scores has made.
  Value drop(Value weights, ArrayRef<Value> scores) {
    Value zeros = emit.splat(BlockEmitter::getType(weights), 0);
    for (Value factor : scores.drop_front()) {
      weights =
          getElementTypeOrSelf(factor.getType()).isInteger(1)
              ? emit.select(factor, weights, zeros)
              : emit.binary<MulOp>(weights, emit.convert(factor, accumulated));
    }
    return weights;
  }

  /// What `add` makes of a block; where none of its scores is seen, what there
  /// was before. Masked scores add exactly nothing to a row that has one which
  /// is greater by what no exponential survives, unless they are multiplied by
  /// what is not finite.
  ///
  /// \param most the greatest scores of its rows, of those seen so far or of
  ///        all.
  /// \param factors what its weights and their gradients are multiplied by.
  SmallVector<Value> unlessMasked(const Rows &rows, Value start,
                                  ValueRange extras, Value most,
                                  ArrayRef<Value> factors, ValueRange before,
                                  function_ref<SmallVector<Value>()> add) {
    if (!skippingMask) {
      return add();
    }
    SmallVector<int64_t> shape(blockType.getShape());
    shape.push_back(blockKeys);
    // The mask of places is made again where scores are, and is never stored.
    SmallVector<Value> firsts = getFirsts(rows, start);
    for (Value &first : firsts) {
      first = emit.fence(first);
    }
    Value isMasked =
        emit.negate(emitSeen(emit, op.getScores(), *skippingMask, shape,
                             sliceExtras(extras, rows, start), firsts));
    double margin = accumulated.isF64() ? kNothingLeft64 : kNothingLeft;
    Value least = emit.reduceAll<MinOp>(most, kInfinity);
    RankedTensorType scalar = BlockEmitter::getType(least);
    Value isLess =
        emit.compare(least, emit.splat(scalar, skippingMask->low + margin),
                     ComparisonDirection::GT);
    Value isDone = emit.binary<AndOp>(isMasked, isLess);
    for (Value factor : factors) {
      isDone = emit.binary<AndOp>(isDone, isFinite(factor));
    }
    return emit.unless(isDone, before, add);
  }

  /// Whether all elements are numbers, and no infinities.
  Value isFinite(Value value) {
    Value zeros = emit.binary<SubtractOp>(value, value);
    Value sum = emit.reduceAll<AddOp>(zeros, 0);
    return emit.compare(sum, emit.splat(BlockEmitter::getType(sum), 0),
                        ComparisonDirection::EQ);
  }

  /// Every block of keys and values comes to every device: `pass` makes from
  /// where it begins, keys, values, and carried values the next of these; the
  /// first `numTravelling` of these go around with keys and values.
  SmallVector<Value> goAround(
      ArrayRef<Value> initial, unsigned numTravelling,
      function_ref<SmallVector<Value>(Value, Value, Value, ValueRange)> pass) {
    if (numShards == 1) {
      return pass({}, key, value, initial);
    }
    Type i32 = emit.getBuilder().getI32Type();
    Value first = context.getOffset(sequence->factor, i32);
    SmallVector<Value> carried{first, key, value};
    llvm::append_range(carried, initial);
    auto travel = [&](SmallVector<Value> made) {
      for (Value &one : MutableArrayRef(made).take_front(numTravelling)) {
        one = context.rotate(one, sequence->factor);
      }
      return made;
    };
    carried = emit.loop(numShards - 1, carried, [&](Value, ValueRange now) {
      SmallVector<Value> next{getFirstBefore(now[0]),
                              context.rotate(now[1], sequence->factor),
                              context.rotate(now[2], sequence->factor)};
      llvm::append_range(
          next, travel(pass(now[0], now[1], now[2], now.drop_front(3))));
      return next;
    });
    return travel(pass(carried[0], carried[1], carried[2],
                       ArrayRef(carried).drop_front(3)));
  }

  /// The first key of the block before one, the last block being before the
  /// first.
  Value getFirstBefore(Value first) {
    Value isFirst = emit.compare(first, emit.index(0), ComparisonDirection::EQ);
    Value last = emit.index(numKeys * (numShards - 1));
    return emit.select(isFirst, last,
                       emit.binary<SubtractOp>(first, emit.index(numKeys)));
  }

  Op op;
  alpa::LocalContext &context;
  std::optional<SequenceLoop> sequence;
  ArrayRef<Value> offsets;
  BlockEmitter emit;
  int64_t numBatch;
  /// The type of sums, and of rows of these.
  Type accumulated;
  RankedTensorType rowsType;
  std::optional<AttentionZigzag> zigzag;
  Value query, key, value;
  SmallVector<int64_t> rowDims;
  /// A block of rows.
  RankedTensorType blockType;
};

class Forward : Loops<alpa::AttentionOp> {
public:
  using Loops::Loops;

  SmallVector<Value> write() {
    SmallVector<int64_t> shape(rowsType.getShape());
    int64_t features = BlockEmitter::getType(value).getShape().back();
    shape.push_back(features);
    SmallVector<Value> state = goAround(
        {emit.splat(rowsType, -kInfinity), emit.splat(rowsType, 0),
         emit.splat(rowsType.clone(shape), 0)},
        0, [&](Value first, Value keys, Value values, ValueRange state) {
          return addKeys(first, keys, values, state);
        });
    Value out = emit.binary<DivOp>(state[2], emit.spread(state[1], features));
    return {makeResult(out, 0), makeResult(state[0], 1),
            makeResult(state[1], 2)};
  }

private:
  SmallVector<Value> extras = getOperandsFrom(3);

  SmallVector<Value> addKeys(Value first, Value keys, Value values,
                             ValueRange state) {
    return overRows(state, 0, [&](const Rows &rows, ValueRange own) {
      return overBlocks(
          first, keys, values, own,
          [&](Value start, Value, Value ownKeys, Value ownValues,
              ValueRange now) {
            return unlessMasked(
                rows, start, extras, now[0], {ownValues}, now,
                [&] { return addBlock(rows, start, ownKeys, ownValues, now); });
          });
    });
  }

  /// \param state m, l and o, see above.
  SmallVector<Value> addBlock(const Rows &rows, Value start, Value keys,
                              Value values, ValueRange state) {
    SmallVector<Value> made =
        emitRegion(op.getScores(), emitProducts(rows, keys),
                   sliceExtras(extras, rows, start), rows, start);
    Value scores = emit.convert(made.front(), accumulated);
    Value most = emit.binary<MaxOp>(state[0],
                                    emit.reduceLast<MaxOp>(scores, -kInfinity));
    // Rows of which nothing has been seen yet but minus infinity have no sums.
    Value isNothing = emit.compare(most, emit.splat(blockType, -kInfinity),
                                   ComparisonDirection::EQ);
    Value base = emit.select(isNothing, emit.splat(blockType, 0), most);
    Value shares = emit.exponential(
        emit.binary<SubtractOp>(scores, emit.spread(base, blockKeys)));
    Value factor = emit.exponential(emit.binary<SubtractOp>(state[0], base));
    Value sum = emit.binary<AddOp>(emit.binary<MulOp>(state[1], factor),
                                   emit.reduceLast<AddOp>(shares, 0));
    Value part = emit.product(emit.convert(drop(shares, made), op.getWeights()),
                              values, numBatch, {getLast()}, {numBatch},
                              accumulated, getProduct(1));
    int64_t features = BlockEmitter::getType(part).getShape().back();
    Value out = emit.binary<AddOp>(
        emit.binary<MulOp>(state[2], emit.spread(factor, features)), part);
    return {most, sum, out};
  }
};

class Backward : Loops<alpa::AttentionGradientOp> {
public:
  using Loops::Loops;

  SmallVector<Value> write() {
    // The gradient's part along the row itself.
    auto getNumbers = [&](unsigned operand) {
      return emit.convert(context.getOperands()[operand], accumulated);
    };
    along = arrange(emit.reduceLast<AddOp>(
                        emit.binary<MulOp>(getNumbers(6), getNumbers(3)), 0),
                    5);
    SmallVector<Value> initial;
    for (Value like : {key, value, query}) {
      initial.push_back(emit.splat(accumulatorOf(like), 0));
    }
    SmallVector<Value> made =
        goAround(initial, 2,
                 [&](Value first, Value keys, Value values, ValueRange state) {
                   return addKeys(first, keys, values, state);
                 });
    return {makeResult(made[2], 0), makeResult(made[0], 1),
            makeResult(made[1], 2)};
  }

private:
  /// What the rows of a block have beside their queries.
  struct OwnRows : Rows {
    Value most, sum, gradient, along;
  };

  /// \param state gradients of keys and values that others have added to, and
  ///        of the queries.
  SmallVector<Value> addKeys(Value first, Value keys, Value values,
                             ValueRange state) {
    return overRows(state, 2, [&](const Rows &rows, ValueRange own) {
      OwnRows block{rows, sliceRows(most, rows), sliceRows(sum, rows),
                    sliceRows(gradient, rows), sliceRows(along, rows)};
      return overBlocks(first, keys, values, own,
                        [&](Value start, Value begin, Value ownKeys,
                            Value ownValues, ValueRange now) {
                          auto add = [&] {
                            return addBlock(block, start, begin, ownKeys,
                                            ownValues, now);
                          };
                          // What is not linear may have no finite slope where
                          // it is masked.
                          if (!op.getGradients().getArgument(1).use_empty()) {
                            return add();
                          }
                          return unlessMasked(block, start, extras, block.most,
                                              {ownKeys, ownValues, block.query,
                                               block.gradient, block.along},
                                              now, add);
                        });
    });
  }

  SmallVector<Value> addBlock(const OwnRows &rows, Value start, Value begin,
                              Value keys, Value values, ValueRange state) {
    SmallVector<Value> parts = makeBlock(rows, start, keys, values);
    SmallVector<Value> next;
    for (auto [whole, part] : llvm::zip(state.take_front(2), parts)) {
      Value before = emit.slice(whole, numBatch, begin, blockKeys);
      next.push_back(emit.update(whole, emit.binary<AddOp>(before, part),
                                 numBatch, begin));
    }
    next.push_back(emit.binary<AddOp>(state[2], parts[2]));
    return next;
  }

  /// Of a block: gradients of its keys and values, and its part of the
  /// queries'.
  SmallVector<Value> makeBlock(const OwnRows &rows, Value start, Value keys,
                               Value values) {
    SmallVector<Value> own = sliceExtras(extras, rows, start);
    Value products = emitProducts(rows, keys);
    SmallVector<Value> made =
        emitRegion(op.getScores(), products, own, rows, start);
    Value scores = emit.convert(made.front(), accumulated);
    Value weights =
        emit.binary<DivOp>(emit.exponential(emit.binary<SubtractOp>(
                               scores, emit.spread(rows.most, blockKeys))),
                           emit.spread(rows.sum, blockKeys));
    Value ofWeights = emit.product(rows.gradient, values, numBatch, {getLast()},
                                   {numBatch + 1}, accumulated, getProduct(1));
    Value ofScores = emit.binary<MulOp>(
        weights, emit.binary<SubtractOp>(drop(ofWeights, made),
                                         emit.spread(rows.along, blockKeys)));
    Value ofProducts =
        emitRegion(op.getGradients(), {ofScores, products}, own, rows, start)
            .front();
    Value ofQueries = emit.product(ofProducts, keys, numBatch, {getLast()},
                                   {numBatch}, accumulated, getProduct(2));
    Value ofKeys = emit.product(ofProducts, rows.query, numBatch, rowDims,
                                rowDims, accumulated, getProduct(3));
    Value ofValues = emit.product(
        emit.convert(drop(weights, made), op.getWeights()), rows.gradient,
        numBatch, rowDims, rowDims, accumulated, getProduct(4));
    return {ofKeys, ofValues, ofQueries};
  }

  Value most = getOperand(4), sum = getOperand(5), gradient = getOperand(6);
  Value along;
  SmallVector<Value> extras = getOperandsFrom(7);
};

} // namespace

SmallVector<Value>
stablehlo::localizeAttention(alpa::AttentionOp op, alpa::LocalContext &context,
                             std::optional<SequenceLoop> sequence,
                             ArrayRef<Value> offsets) {
  return Forward(op, context, sequence, offsets).write();
}

SmallVector<Value> stablehlo::localizeAttention(
    alpa::AttentionGradientOp op, alpa::LocalContext &context,
    std::optional<SequenceLoop> sequence, ArrayRef<Value> offsets) {
  return Backward(op, context, sequence, offsets).write();
}
