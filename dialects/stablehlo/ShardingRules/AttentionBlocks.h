//===- AttentionBlocks.h - Scores of some keys ------------------*- C++ -*-===//
//
// What the local forms of attention write for one block of keys, and the loops
// that they run over blocks in.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECTS_STABLEHLO_SHARDINGRULES_ATTENTIONBLOCKS_H
#define DIALECTS_STABLEHLO_SHARDINGRULES_ATTENTIONBLOCKS_H

#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/ShardingRule.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/IRMapping.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::stablehlo {

/// Few operations, written at the insertion point of a builder.
class BlockEmitter {
public:
  BlockEmitter(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  static RankedTensorType getType(Value value) {
    return cast<RankedTensorType>(value.getType());
  }

  OpBuilder &getBuilder() { return builder; }

  /// A tensor of one number, which may be an infinity.
  Value splat(RankedTensorType type, double number);
  /// The scalar `tensor<i32>`.
  Value index(int64_t number);
  Value convert(Value value, Type elementType);
  /// A value per row for every score of it, or for every feature: the same
  /// along the last dimension.
  Value spread(Value rows, int64_t size);
  /// A scalar everywhere.
  Value fill(Value scalar, RankedTensorType type);
  template <typename Op> Value binary(Value lhs, Value rhs) {
    return Op::create(builder, loc, lhs.getType(), lhs, rhs).getResult();
  }
  Value exponential(Value value);
  Value compare(Value lhs, Value rhs, ComparisonDirection direction);
  Value negate(Value mask);
  /// The same where it is not null, and not known to be.
  Value fence(Value value);
  Value select(Value mask, Value onTrue, Value onFalse);
  /// Of the last dimension: the greatest, or the sum.
  template <typename Op> Value reduceLast(Value value, double init);
  /// Of all elements, a scalar: the least, the sum, whether any is true.
  template <typename Op> Value reduceAll(Value value, double init);
  /// `size` entries of dimension `dim` from a scalar `start` on.
  Value slice(Value value, int64_t dim, Value start, int64_t size);
  Value update(Value value, Value part, int64_t dim, Value start);

  /// A product over `numBatch` first dimensions.
  Value product(Value lhs, Value rhs, int64_t numBatch,
                ArrayRef<int64_t> lhsSummed, ArrayRef<int64_t> rhsSummed,
                Type elementType, DictionaryAttr attributes);

  /// Runs `body` so many times: from the turn, a scalar `tensor<i32>`, and what
  /// the turn before has made, it makes the next values of these types.
  SmallVector<Value>
  loop(int64_t count, ArrayRef<Value> initial,
       function_ref<SmallVector<Value>(Value turn, ValueRange carried)> body);
  /// What `body` makes, or some values of the same types where a scalar
  /// `tensor<i1>` is true. Priced as if it were every other time.
  SmallVector<Value> unless(Value isDone, ValueRange done,
                            function_ref<SmallVector<Value>()> body);

private:
  template <typename Op>
  Value reduce(Value value, double init, ArrayRef<int64_t> dims);

  OpBuilder &builder;
  Location loc;
};

/// The region of attention for a block: its tensors have the shape of the
/// scores, and so has the block's form the shape of the block. Returns what it
/// yields.
///
/// \param numbers those of its arguments that are scores.
/// \param extras the blocks of the others.
/// \param offsets per dimension of the scores where the block begins, a scalar
///        `tensor<i32>`, or null where it is the first.
SmallVector<Value> emitScores(BlockEmitter &emit, Region &region,
                              ArrayRef<Value> numbers, ArrayRef<Value> extras,
                              ArrayRef<Value> offsets);

/// Which scores are masked: those that have a low number in the place of what
/// they would be, whatever that is.
struct ScoreMask {
  /// A score is not masked where all of these are as said.
  SmallVector<std::pair<Value, bool>> seen;
  /// The greatest number that masked scores have.
  double low;
};

/// The mask that a region of scores ends with; none where there is none that
/// can be told without the scores.
std::optional<ScoreMask> findMask(Region &region);

/// Whether a mask hides what is on one side of a diagonal of rows and keys.
bool isTriangular(const ScoreMask &mask, Region &region);

/// Whether some scores of a block are not masked, a scalar `tensor<i1>`; see
/// `emitScores`.
///
/// \param shape of the block.
Value emitSeen(BlockEmitter &emit, Region &region, const ScoreMask &mask,
               ArrayRef<int64_t> shape, ArrayRef<Value> extras,
               ArrayRef<Value> offsets);

/// Operators of a region of attention, in order, for a block of scores; see
/// `emitScores`.
///
/// \param mapping arguments; gets what is made.
void emitOperators(BlockEmitter &emit, ArrayRef<Operation *> operators,
                   ArrayRef<int64_t> shape, ArrayRef<Value> offsets,
                   IRMapping &mapping);

/// The loop along which queries and keys are split alike: a factor of the rule
/// and a dimension of the rows.
struct SequenceLoop {
  unsigned factor;
  int64_t dim;
};

/// What a device goes over in blocks: rows along `rowDim`, and keys.
struct ScoreBlocks {
  /// Blocks are divisors of all, and have as many rows as keys where there are
  /// enough. Whoever takes few keys moves the rows' sums often, and whoever
  /// takes few rows the keys.
  ///
  /// \param rows shape of the rows of a device, `[b.., r..]`.
  /// \param numKeys of a device.
  /// \param sequence split into `numShards`; none if it cannot be.
  template <typename Op>
  ScoreBlocks(Op op, ArrayRef<int64_t> rows, int64_t numKeys,
              std::optional<SequenceLoop> sequence, int64_t numShards);

  /// The part of the blocks that is not above the diagonal.
  double getSeenShare() const;

  int64_t rowDim, numRows, blockRows, numKeys, blockKeys, numShards;
  /// The mask for which blocks are skipped of which it hides all scores; none
  /// where all are computed. One block has all, and so something to see.
  std::optional<ScoreMask> skippingMask;
  /// Whether a device has, of a sequence that is split, half a block from its
  /// front and as much from its back, in zigzag. With the second half of the
  /// sequence in one place, the device that has it would see everything and be
  /// waited for; so each sees the same.
  bool isZigzag;
};

/// The local forms: see `AttentionLoops.cpp`.
///
/// \param offsets per dimension of the rows the first of the device, a scalar
///        `tensor<i32>`, or null where it has all.
SmallVector<Value> localizeAttention(alpa::AttentionOp op,
                                     alpa::LocalContext &context,
                                     std::optional<SequenceLoop> sequence,
                                     ArrayRef<Value> offsets);
SmallVector<Value> localizeAttention(alpa::AttentionGradientOp op,
                                     alpa::LocalContext &context,
                                     std::optional<SequenceLoop> sequence,
                                     ArrayRef<Value> offsets);

} // namespace mlir::stablehlo

#endif // DIALECTS_STABLEHLO_SHARDINGRULES_ATTENTIONBLOCKS_H
