//===- LocalEmitter.h - Writing operators for one device --------*- C++ -*-===//

#ifndef DIALECTS_STABLEHLO_SHARDINGRULES_LOCALEMITTER_H
#define DIALECTS_STABLEHLO_SHARDINGRULES_LOCALEMITTER_H

#include "dialects/alpa/ShardingRule.h"
#include "mlir/IR/BuiltinTypes.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::stablehlo {

/// Short names for the few operations of which local forms are made.
class LocalEmitter {
public:
  LocalEmitter(alpa::LocalContext &context, Location loc)
      : context(context), builder(context.getBuilder()), loc(loc) {}

  /// `tensor` filled with `value` (an integer, or 0 / 1 of another type).
  Value splat(RankedTensorType type, int64_t value);
  /// `tensor` filled with what leaves a sum as it is.
  Value neutral(RankedTensorType type);
  /// The one-dimensional tensor of the given numbers.
  Value vector(ArrayRef<int64_t> values, Type elementType);
  /// A vector along dimension `dim`, the same along all others, or a scalar
  /// everywhere.
  Value broadcast(Value scalarOrVector, RankedTensorType type, int64_t dim);
  Value convert(Value value, Type elementType);
  Value reshape(Value value, ArrayRef<int64_t> shape);
  Value slice(Value value, int64_t dim, int64_t start, int64_t limit);
  /// `starts` are scalars of one integer type, one per dimension.
  Value dynamicSlice(Value value, ValueRange starts, ArrayRef<int64_t> sizes);
  /// So many rows of zeros in front and behind.
  Value pad(Value value, int64_t dim, int64_t rows);
  Value compare(Value lhs, Value rhs, ComparisonDirection direction,
                ComparisonType type = ComparisonType::SIGNED);
  Value select(Value mask, Value onTrue, Value onFalse);

  template <typename Op> Value binary(Value lhs, Value rhs) {
    return Op::create(builder, loc, lhs.getType(), lhs, rhs).getResult();
  }

  /// A `tensor<i1>` that is true where the device has the first block of a
  /// factor.
  Value isFirstBlock(unsigned factor);

  /// Signed indices, wide enough for `maxValue` and for every value that the
  /// given indices can have: arithmetic on them neither wraps nor turns large
  /// unsigned numbers into negative ones.
  Value toSignedIndices(Value indices, int64_t maxValue);

  /// The vector of one offset per component of the index vectors, shaped like
  /// `indices`: the first row of the block of `factors[i]` for component i, and
  /// 0 where `factors[i]` is -1 or not split. A null value if all are 0.
  Value indexOffsets(RankedTensorType indices, int64_t indexVectorDim,
                     ArrayRef<int64_t> factors);

private:
  alpa::LocalContext &context;
  OpBuilder &builder;
  Location loc;
};

} // namespace mlir::stablehlo

#endif // DIALECTS_STABLEHLO_SHARDINGRULES_LOCALEMITTER_H
