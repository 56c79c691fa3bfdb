//===- IntegerRange.h - Between which numbers integers lie ------*- C++ -*-===//

#ifndef CPP_ANALYSIS_INTEGERRANGE_H
#define CPP_ANALYSIS_INTEGERRANGE_H

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>

namespace mlir::alpa {

/// All integers from `least` to `most`; of booleans, 0 and 1.
struct IntegerRange {
  int64_t least = 0, most = 0;
  bool operator==(const IntegerRange &other) const {
    return least == other.least && most == other.most;
  }
};

/// What an element type can hold; none for others than integers and booleans,
/// and for those that hold more than 64 signed bits do.
std::optional<IntegerRange> getRangeOfType(Type element);

/// Ranges in which the elements of tensors of integers or booleans lie,
/// whatever the arguments of the program are. Numbers that would wrap around
/// have that of their type.
class IntegerRanges {
public:
  /// None if the element type has none.
  std::optional<IntegerRange> get(Value value);

private:
  IntegerRange compute(Value value, IntegerRange all);
  std::optional<IntegerRange> computeElementwise(Operation *op);
  std::optional<IntegerRange> computeMovement(OpResult result);
  std::optional<IntegerRange> computeReduction(OpResult result);

  llvm::DenseMap<Value, IntegerRange> known;
  int depth = 0;
};

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_INTEGERRANGE_H
