//===- PaddedValues.h - Values with longer dimensions -----------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_PADDEDVALUES_H
#define CPP_TRANSFORMS_PADDEDVALUES_H

#include "cpp/transforms/PaddedOperators.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include <optional>

namespace mlir::alpa {

/// The longer form of every value that has one, and what stands behind its
/// elements.
class PaddedValues {
public:
  PaddedValues(int64_t size, int64_t padded) : size(size), padded(padded) {}

  /// Notes that `made` stands for `value`, with longer `dims`.
  void set(Value value, Value made, const llvm::SmallBitVector &dims,
           Filling filling);

  /// The form of `value` with longer `dims`, filled as required: as it was set,
  /// or else made of the value, again where it is made of constants and with a
  /// `pad` otherwise.
  Value get(Value value, const llvm::SmallBitVector &dims, Filling required);

  /// What is known to stand behind the elements of that form.
  Filling getFilling(Value value, const llvm::SmallBitVector &dims) const;

  /// Puts what has been set in the place of the values, cut to their sizes.
  void replace();

private:
  struct Form {
    Value value;
    llvm::SmallBitVector dims;
    Filling filling = Filling::Anything;
  };

  Form make(Value value, const llvm::SmallBitVector &dims, Filling required);
  Form extend(Value value, const Form &form, const llvm::SmallBitVector &dims,
              Filling filling);
  std::optional<Form> remake(Value value, const llvm::SmallBitVector &dims,
                             unsigned depth);
  Operation *remakeOperator(Operation *op, const llvm::SmallBitVector &dims,
                            unsigned depth);
  Value fill(const Form &form, Location loc, Filling filling);

  int64_t size, padded;
  /// Values that were set, in the order in which they were made.
  llvm::SetVector<Value> made;
  /// Forms of a value with different longer dimensions; first that which was
  /// set, whose dimensions all others have as well.
  DenseMap<Value, SmallVector<Form, 1>> forms;
};

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_PADDEDVALUES_H
