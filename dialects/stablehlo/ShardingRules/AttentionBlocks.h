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
  Value select(Value mask, Value onTrue, Value onFalse);
  /// Of the last dimension: the greatest, or the sum.
  template <typename Op> Value reduceLast(Value value, double init);
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

private:
  Value reduce(Value value, Value init, StringRef combiner);

  OpBuilder &builder;
  Location loc;
};

/// The region of attention for a block: its tensors have the shape of the
/// scores, and so has the block's form the shape of the block.
///
/// \param numbers those of its arguments that are scores.
/// \param extras the blocks of the others.
/// \param offsets per dimension of the scores where the block begins, a scalar
///        `tensor<i32>`, or null where it is the first.
Value emitScores(BlockEmitter &emit, Region &region, ArrayRef<Value> numbers,
                 ArrayRef<Value> extras, ArrayRef<Value> offsets);

/// How many keys a device takes at once: a divisor of all.
///
/// \param scoreBytes of one key.
int64_t getBlockKeys(int64_t numKeys, double scoreBytes, int64_t blockBytes);

/// The local forms: see `AttentionLoops.cpp`. `sequence` is the factor along
/// which queries and keys are split, if there is one.
SmallVector<Value> localizeAttention(alpa::AttentionOp op,
                                     alpa::LocalContext &context,
                                     std::optional<unsigned> sequence,
                                     ArrayRef<Value> offsets);
SmallVector<Value> localizeAttention(alpa::AttentionGradientOp op,
                                     alpa::LocalContext &context,
                                     std::optional<unsigned> sequence,
                                     ArrayRef<Value> offsets);

} // namespace mlir::stablehlo

#endif // DIALECTS_STABLEHLO_SHARDINGRULES_ATTENTIONBLOCKS_H
