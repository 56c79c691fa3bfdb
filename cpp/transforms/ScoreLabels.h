//===- ScoreLabels.h - Dimensions of attention's scores ---------*- C++ -*-===//
//
// Which dimensions of a value are which of the scores of attention, on the way
// through operators that compute every element from one.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_TRANSFORMS_SCORELABELS_H
#define CPP_TRANSFORMS_SCORELABELS_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace mlir::alpa {

/// Per dimension of a value the dimension of the scores that it is, or `kUnit`.
using Labels = SmallVector<int, 6>;

/// A dimension of one element: it may be any.
inline constexpr int kUnit = -1;

/// Sizes of a tensor of static shape; none of another type.
std::optional<ArrayRef<int64_t>> getStaticShape(Value value);

/// Dimensions in their own order.
Labels getOwnLabels(ArrayRef<int64_t> shape);

/// Whether an operator computes every element from those at its position.
bool isElementwise(Operation *op);

/// Whether an operator only moves, repeats or converts elements that it has.
bool isMovement(Operation *op);

/// Labels of an operand of an operator that is one of the two, from those of
/// its result; none where they cannot be told.
std::optional<Labels> getOperandLabels(OpOperand &operand,
                                       const Labels &result);

/// Those of its result, from those of an operand.
std::optional<Labels> getResultLabels(OpOperand &operand, const Labels &labels);

/// What the scores of attention are made of, by dimensions of one of their
/// forms.
struct ScoreDims {
  SmallVector<int64_t> shape;
  SmallVector<int> batch, rows;
  int key = 0;

  /// Batch, rows, keys: the order in which attention has them.
  SmallVector<int> getOrder() const;
  SmallVector<int64_t> getOrderedShape() const;
  /// Whether all dimensions are among those of a value.
  bool isWhole(const Labels &labels) const;
  /// Whether a value has as many elements as there are rows and keys: keys are
  /// among its dimensions, and rows.
  bool isPerScore(const Labels &labels) const;
};

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_SCORELABELS_H
