//===- PaddedOperators.h - Operators with longer loops ----------*- C++ -*-===//
//
// The same operator on tensors that are longer along some loops: the elements
// that it had before are what they were, those behind them are anything.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_TRANSFORMS_PADDEDOPERATORS_H
#define CPP_TRANSFORMS_PADDEDOPERATORS_H

#include "dialects/alpa/ShardingRule.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/SmallBitVector.h"
#include <optional>

namespace mlir::alpa {

struct PaddingOptions {
  /// Padded sizes are multiples of it: the number of devices.
  int64_t multiple = 1;
  /// What padding may add to a size, as a share of it.
  double mostAdded = 1;

  /// Whether the padded size can be split, at no more than the price allowed.
  bool canPad(int64_t size, int64_t padded) const;

  /// Whether blocks become smaller by that, too.
  bool isWorthwhile(int64_t size, int64_t padded) const;
};

/// What is known of the elements behind those of the program.
enum class Filling { Anything, Zero, One, Lowest, Highest, Ones };

/// The filling that changes nothing in a reduction.
Filling getNeutral(ReductionKind kind);

/// Whether tensors of the type can be filled: there are types without a zero.
bool canBeFilled(Type type);

/// What a constant is filled with; none if it is none of the fillings.
std::optional<Filling> getFillingOf(Value value);

/// The tensor whose elements are all that filling; `Anything` is zero.
Value createFilled(OpBuilder &builder, Location loc, RankedTensorType type,
                   Filling filling);

/// i1 of `shape`, by comparing where an element stands along `dim` with
/// `limit`.
Value createPositionMask(OpBuilder &builder, Location loc,
                         ArrayRef<int64_t> shape, int64_t dim,
                         stablehlo::ComparisonDirection direction,
                         int64_t limit);

/// The shape of a tensor; none of what is no tensor.
ArrayRef<int64_t> getShapeOf(Value value);

/// Loops of an operator that become longer.
struct LongerLoops {
  /// Those of `factors` get the size `padded`.
  LongerLoops(const ShardingRule &rule, const llvm::SmallBitVector &factors,
              int64_t padded);
  /// The factors get sizes of their own.
  LongerLoops(const ShardingRule &rule, const llvm::SmallBitVector &factors,
              ArrayRef<int64_t> sizes)
      : rule(rule), factors(factors), sizes(sizes) {}

  const ShardingRule &rule;
  llvm::SmallBitVector factors;
  /// Per factor of `rule`; what is said of others than `factors` is not read.
  SmallVector<int64_t> sizes;

  /// The dimensions of a tensor that are such a loop.
  llvm::SmallBitVector getDims(const TensorFactors &tensor) const;

  /// The shape of a tensor with longer dimensions; none of what is no tensor.
  SmallVector<int64_t> getShape(Type type, const TensorFactors &tensor) const;

  /// Its type; that which it had where no dimension is longer.
  Type getType(Type type, const TensorFactors &tensor) const;
};

/// Whether `padOperator` knows a longer form: each loop is a dimension of its
/// own in all tensors that have it, and nothing depends on its size but what
/// is known to.
bool canPadOperator(Operation *op, const LongerLoops &loops);

/// True for operators that make every element of their result of the elements
/// in the same place of their operands, or of scalars.
bool isPointwise(Operation *op, const ShardingRule &rule);

/// What has to stand behind the elements of an operand: where a loop is summed
/// up, the neutral element; where windows reach there, what they are padded
/// with.
Filling getRequiredFilling(Operation *op, unsigned operand,
                           const LongerLoops &loops);

/// The longer form on padded operands, which are filled as required.
///
///   %1 = gather %table, %i : tensor<5xf32>  // slice sizes 1
///   with 8 rows: %2 = clamp 0, %i, 4; %1 = gather %table, %2 : tensor<8xf32>
Operation *padOperator(OpBuilder &builder, Operation *op, ValueRange operands,
                       const LongerLoops &loops);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_PADDEDOPERATORS_H
